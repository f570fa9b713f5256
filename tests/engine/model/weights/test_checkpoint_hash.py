"""checkpoint_hash: same folder, same hash; another name, size, header or config, another hash; data does not count."""

from pathlib import Path

from support.checkpoint_folders import micro_config, random_plain, write_folder
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights import checkpoint_hash

CONFIG = ModelConfig.from_json(micro_config())


def test_equal_folders_have_equal_hashes(tmp_path: Path) -> None:
    folders = [write_folder(tmp_path / name, micro_config(), random_plain(CONFIG), shards=2) for name in ("a", "b")]
    assert checkpoint_hash(folders[0]) == checkpoint_hash(folders[1])


def test_values_do_not_count(tmp_path: Path) -> None:
    tensors = random_plain(CONFIG)
    before = checkpoint_hash(write_folder(tmp_path, micro_config(), tensors))
    tensors["lm_head.weight"] += 1
    assert checkpoint_hash(write_folder(tmp_path, micro_config(), tensors)) == before


def test_name_shape_and_config_count(tmp_path: Path) -> None:
    tensors = random_plain(CONFIG)
    hashes = {checkpoint_hash(write_folder(tmp_path / "a", micro_config(), tensors))}
    hashes.add(checkpoint_hash(write_folder(tmp_path / "b", micro_config(), tensors, shards=2)))
    hashes.add(checkpoint_hash(write_folder(tmp_path / "c", micro_config(rms_norm_eps=1e-6), tensors)))
    wider = {**tensors, "lm_head.weight": tensors["lm_head.weight"].float()}
    hashes.add(checkpoint_hash(write_folder(tmp_path / "d", micro_config(), wider)))
    renamed = {**tensors}
    renamed["model.visual.x"] = renamed.pop("lm_head.weight")
    hashes.add(checkpoint_hash(write_folder(tmp_path / "e", micro_config(), renamed)))
    assert len(hashes) == 5


def test_hash_is_that_of_the_folder_wherever_it_lies(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", micro_config(), random_plain(CONFIG))
    before = checkpoint_hash(folder)
    assert checkpoint_hash(folder.rename(tmp_path / "b")) == before
