"""Which folder is served, and what is said where there is none."""

from pathlib import Path

import pytest

from twinspark_tools.launch.model_folder import DEMO_FOLDER, ModelFolderError, find_model

ROOT = Path(__file__).parents[3]


def write_checkpoint_at(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_a_given_folder_is_served_even_where_the_demo_model_is(tmp_path: Path) -> None:
    write_checkpoint_at(tmp_path / DEMO_FOLDER)
    other = write_checkpoint_at(tmp_path / "other")
    assert find_model(other, tmp_path) == other


def test_a_given_folder_is_relative_to_where_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = write_checkpoint_at(tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    assert find_model(Path("other"), ROOT) == other


def test_without_one_the_demo_model_is_served(tmp_path: Path) -> None:
    demo = write_checkpoint_at(tmp_path / DEMO_FOLDER)
    assert find_model(None, tmp_path) == demo


@pytest.mark.parametrize("is_emptied", [False, True], ids=["absent", "empty"])
def test_a_demo_model_that_is_not_there_is_told_with_both_ways_out(tmp_path: Path, is_emptied: bool) -> None:
    if is_emptied:
        (tmp_path / DEMO_FOLDER).mkdir(parents=True)
    with pytest.raises(ModelFolderError) as raised:
        find_model(None, tmp_path)
    assert f"`git checkout HEAD -- {DEMO_FOLDER}`" in str(raised.value)
    assert "MODEL=folder" in str(raised.value)


def test_a_given_folder_that_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match=r"MODEL=nowhere: no such folder"):
        find_model(Path("nowhere"), tmp_path)
    with pytest.raises(ModelFolderError, match=r"holds no config\.json"):
        find_model(tmp_path, tmp_path)
