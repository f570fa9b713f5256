"""A byte-level BPE tokenizer of 330 ids with GLM's special tokens, and a chat template in GLM's layout."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

SPECIAL = (
    "<|endoftext|>",
    "[gMASK]",
    "<sop>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|observation|>",
    "<|begin_of_image|>",
    "<|image|>",
    "<|end_of_image|>",
)
# Added tokens without the special flag, as in GLM's tokenizer.
MARKUP = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
)
MERGED = ("th", "the", "in", "er", "an", "on", "Ġt", "Ġth", "Ġthe", "Ġa", "he", "hel", "lo", "hello", "or", "wor", "ld")
END_TOKENS = ("<|endoftext|>", "<|user|>", "<|observation|>")

TEMPLATE = """\
[gMASK]<sop>
{%- set thinking = enable_thinking is not defined or enable_thinking %}
{%- if thinking %}{{ '<|system|>Reasoning Effort: ' }}
{%- if reasoning_effort is defined and reasoning_effort in ('low', 'high') %}{{ reasoning_effort | capitalize }}
{%- else %}{{ 'Max' }}{% endif %}{% endif %}
{%- if tools %}{{ '<|system|>\\n# Tools\\n' }}
{%- for tool in tools %}{{ tool.function | tojson }}{{ '\\n' }}{% endfor %}
{{- 'Write <tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>' }}{% endif %}
{%- set last = namespace(user=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set last.user = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}
{%- if m.role == 'system' %}{{ '<|system|>' + m.content }}
{%- elif m.role == 'user' %}{{ '<|user|>' + m.content }}
{%- elif m.role == 'assistant' %}{{ '<|assistant|><think>' }}
{%- if m.reasoning_content and (not clear_thinking or loop.index0 > last.user) %}{{ m.reasoning_content }}{% endif %}
{{- '</think>' + m.content.strip() }}
{%- for call in m.tool_calls or [] %}{{ '<tool_call>' + call.function.name }}
{%- for key, value in call.function.arguments.items() %}
{{- '<arg_key>' + key + '</arg_key><arg_value>' }}
{{- value if value is string else value | tojson }}{{ '</arg_value>' }}{% endfor %}
{{- '</tool_call>' }}{% endfor %}
{%- elif m.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|observation|>' }}{% endif %}
{{- '<tool_response>' + m.content + '</tool_response>' }}
{%- else %}{{ raise_exception('no such role') }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|><think>' if thinking else '<|assistant|><think></think>' }}{% endif %}
"""


def build_tokenizer() -> Tokenizer:
    """Build the tokenizer: 256 bytes, a few merges, then the added tokens."""
    vocabulary = {char: i for i, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges: list[tuple[str, str]] = []
    for word in MERGED:
        split = max(i for i in range(1, len(word)) if word[:i] in vocabulary and word[i:] in vocabulary)
        merges.append((word[:split], word[split:]))
        vocabulary[word] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKUP])
    return tokenizer


def write_folder(folder: Path, *, template: bool = True, generation: dict[str, float] | None = None) -> Path:
    """Write tokenizer.json and, if asked for, the template and generation_config.json into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    build_tokenizer().save(str(folder / "tokenizer.json"))
    if template:
        (folder / "chat_template.jinja").write_text(TEMPLATE)
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>", "model_max_length": 10**9}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    return folder
