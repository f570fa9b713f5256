"""Conversations about pictures: the text of the chat template, the pictures in its order, and the one right reply."""

from itertools import islice

import pytest

from twinspark_demo.drafts.template import DEMO_FOLDER, load_template
from twinspark_demo.pictures.conversations import IMAGE_TEXT, JOINT, KINDS, PictureConversation, conversations
from twinspark_demo.pictures.picture import Picture
from twinspark_demo.rows.render import render

COUNT = 300


@pytest.fixture(scope="module")
def drawn() -> list[PictureConversation]:
    return list(islice(conversations(6), COUNT))


def request_of(drawn: PictureConversation) -> str:
    content: str = drawn.conversation.messages[-2]["content"]
    return content


def reply_of(drawn: PictureConversation) -> str:
    content: str = drawn.conversation.messages[-1]["content"]
    return content


def parts_of(request: str) -> list[dict[str, str]]:
    """The request as a client of the chat API sends it."""
    texts = request.split(IMAGE_TEXT)
    parts: list[dict[str, str]] = []
    for place, text in enumerate(texts):
        parts += [{"type": "image"}] * (place > 0) + [{"type": "text", "text": text}] * bool(text)
    return parts


def test_the_same_seed_draws_the_same_and_another_seed_others() -> None:
    first, again, other = (list(islice(conversations(seed), 5)) for seed in (3, 3, 4))
    assert [each.conversation for each in first] == [each.conversation for each in again]
    assert [each.pictures[0].image.tobytes() for each in first] == [each.pictures[0].image.tobytes() for each in again]
    assert [each.conversation for each in first] != [each.conversation for each in other]


def test_the_text_is_what_the_chat_template_makes_of_images(drawn: list[PictureConversation]) -> None:
    template = load_template(DEMO_FOLDER)
    for each in drawn:
        conversation = each.conversation
        if not conversation.enable_thinking:
            continue  # a reply without thinking begins otherwise; rows/render.py is tested for it
        messages = [*conversation.messages[:-2], {"role": "user", "content": parts_of(request_of(each))}]
        expected = template.render(
            messages=messages,
            tools=None,
            add_generation_prompt=True,
            **({"reasoning_effort": conversation.reasoning_effort} if conversation.reasoning_effort else {}),
        )
        assert "".join(text for text, _ in render(conversation)).startswith(expected)


def test_an_image_stands_in_the_text_for_every_picture(drawn: list[PictureConversation]) -> None:
    for each in drawn:
        assert request_of(each).count(IMAGE_TEXT) == len(each.pictures) == (2 if each.conversation.kind == "two" else 1)


def test_replies_are_what_the_pictures_answer(drawn: list[PictureConversation]) -> None:
    joint = 0
    for each in drawn:
        reply, (first, *others) = reply_of(each), each.pictures
        if JOINT in reply:
            joint += 1
            assert reply in _joint_answers(first, others[0])
        else:
            assert sum(reply in picture.answers.values() for picture in each.pictures) == 1
    assert joint > COUNT / 12


def _joint_answers(first: Picture, second: Picture) -> set[str]:
    shared = first.answers.keys() & second.answers.keys()
    return {JOINT.join((first.answers[asked], second.answers[asked])) for asked in shared}


@pytest.mark.parametrize("kind", list(KINDS))
def test_questions_stand_before_and_behind_the_pictures(drawn: list[PictureConversation], kind: str) -> None:
    requests = [request_of(each) for each in drawn if each.conversation.kind == kind]
    before = sum(request.endswith(IMAGE_TEXT) and not request.startswith(IMAGE_TEXT) for request in requests)
    behind = sum(request.startswith(IMAGE_TEXT) and not request.endswith(IMAGE_TEXT) for request in requests)
    assert min(before, behind) > len(requests) / 4
    assert (before + behind < len(requests)) == (kind == "two")  # of two pictures, some have it between them
