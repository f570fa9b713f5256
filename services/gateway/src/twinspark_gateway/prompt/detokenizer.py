"""Turns token bytes into text as they arrive; a character that is split over tokens is never cut."""

import codecs


class Detokenizer:
    """One run of text. Owned by one reply (or one part of it) and fed in order."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, token_bytes: bytes) -> str:
        """Take one token's bytes and give the characters that are now complete.

        Bytes that may still become a character are held; bytes that no longer can become U+FFFD at once. What is
        held when the text ends is dropped with this object.
        """
        return self._decoder.decode(token_bytes)

    def finish(self) -> str:
        """Give U+FFFD for what is held. For prompts only: a reply drops its incomplete tail."""
        return self._decoder.decode(b"", final=True)
