"""The vocabulary in xgrammar's form."""

from xgrammar import TokenizerInfo, VocabType

from twinspark_grammar.vocabulary import Vocabulary


def build_tokenizer_info(vocabulary: Vocabulary) -> TokenizerInfo:
    """Build it; seconds for a vocabulary of GLM's size. Matchers bring their own stop ids."""
    return TokenizerInfo(
        list(vocabulary.token_bytes), VocabType.RAW, vocab_size=len(vocabulary.token_bytes), stop_token_ids=[]
    )
