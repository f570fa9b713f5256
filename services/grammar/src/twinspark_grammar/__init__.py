"""The grammar service: compiles grammars in killable processes and answers token masks for windows of drafts."""
