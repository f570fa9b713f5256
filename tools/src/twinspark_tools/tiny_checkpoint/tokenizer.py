"""A byte-level BPE tokenizer in GLM's form: digits one by one, nothing added by itself, decoding exact."""

from collections.abc import Mapping

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from twinspark_tools.tiny_checkpoint.corpus import training_text
from twinspark_tools.tiny_checkpoint.shapes import Shape
from twinspark_tools.tiny_checkpoint.special_tokens import SPECIAL_TOKENS

# A word with at most one character before it, one digit, punctuation with a space before it, line ends, other space.
PIECES = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def tokenizer_json(shape: Shape) -> str:
    """tokenizer.json: bytes and merges up to the first special id, then GLM's added tokens in their order."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = BpeTrainer(
        vocab_size=shape.first_special_id,
        min_frequency=2,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(training_text(), trainer)
    if tokenizer.get_vocab_size() != shape.first_special_id:
        raise ValueError(f"the training text gives {tokenizer.get_vocab_size()} of {shape.first_special_id} tokens")
    tokenizer.add_tokens([AddedToken(token, special=special, normalized=False) for token, special in SPECIAL_TOKENS])
    return tokenizer.to_str(pretty=True)


def tokenizer_config_json(max_length: int) -> Mapping[str, object]:
    """tokenizer_config.json: no token is added by itself."""
    return {
        "tokenizer_class": "TokenizersBackend",
        "model_max_length": max_length,
        "padding_side": "left",
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|endoftext|>",
        "pad_token": "<|endoftext|>",
    }
