"""Single-line faults of a running engine, each with the gate that must find it through HTTP and what that gate says."""

from dataclasses import dataclass

from support.planted_fault import Fault


@dataclass(frozen=True, slots=True)
class GateFault:
    """`says`: part of the gate's line in the table."""

    gate: str
    says: str
    fault: Fault


SERVICER = "twinspark_engine.servicer"
SUBMIT = "        self._loop.post(Submit(accepted, arrived_at))\n"

GATE_FAULTS = (
    GateFault(
        "batchexact",
        "differ; request",
        Fault(
            "one carry shared by two members",
            "twinspark_kernels.kda.reference",
            "M = state.index_select(0, index)",
            "M = state.index_select(0, index[:1].expand_as(index))",
        ),
    ),
    GateFault(
        "batchexact",
        "a request was answered with 503",
        Fault(
            "requests are answered with an error",
            "twinspark_engine.servicer",
            "        self._check_serving()\n        stream = ",
            "        raise EngineDrainingError\n        stream = ",
        ),
    ),
    GateFault(
        "batchexact",
        "'min_tokens': 10}: ",
        Fault(
            "stop ids outlive their request",
            "twinspark_engine.runner.sampling.adjustments",
            "for table in self._tables():\n            table[slot].zero_()",
            "for table in (self._output_counts, self._is_in_prompt, self._bias):\n            table[slot].zero_()",
        ),
    ),
    GateFault(
        "batchexact",
        "differ; request",
        Fault(
            "one history of all requests with penalties",
            "twinspark_engine.runner.sampling.adjustments",
            "self._output_counts[slot, column] += 1",
            "self._output_counts[list(self._counting_slots), column] += 1",
        ),
    ),
    GateFault(
        "background",
        "the one that yields: ",
        Fault(
            "a request that yields says everything again",
            "twinspark_engine.scheduler.outcome",
            "num_heard = max(0, delivery.num_output_tokens - running.num_output_tokens)",
            "num_heard = 0",
        ),
    ),
    GateFault(
        "chunkexact",
        "differ; grouped with",
        Fault(
            "a position counted over the group",
            "twinspark_engine.runner.row_buffers",
            "torch.arange(segment.start, segment.end, out=",
            "torch.arange(segment.start + first // 64 * 64, segment.end + first // 64 * 64, out=",
        ),
    ),
    GateFault(
        "boundaries",
        "tokens in a group: ",
        Fault(
            "a block written by the wrong slot",
            "twinspark_kernels.paged",
            "blocks = self.table[slots, rows >> ",
            "blocks = self.table[torch.where(slots < 0, slots, slots.amax()), rows >> ",
        ),
    ),
    GateFault(
        "boundaries",
        "tokens of a longer prompt: ",
        Fault(
            "a block's first row written to the block before",
            "twinspark_kernels.paged",
            "blocks = self.table[slots, rows >> ",
            "blocks = self.table[slots, (rows - 1).clamp(min=0) >> ",
        ),
    ),
    GateFault(
        "transcripts",
        "of 14 differ; ",
        Fault(
            "norms have no epsilon", "twinspark_kernels.rms_norm.reference", "keepdim=True) + eps)", "keepdim=True))"
        ),
    ),
    GateFault(
        "cancel",
        "differ; request",
        Fault(
            "a request that is cancelled takes another's carry along",
            "twinspark_engine.runner.runner",
            "            if slot in self._slots:\n                self._free(slot)\n",
            "            if slot in self._slots:\n                self._free(slot)\n"
            "                self._state.reset_slot(min(self._slots, default=slot))\n",
        ),
    ),
    GateFault(
        "cancel",
        "differ; request",
        Fault(
            "a prompt that is left takes another's carry along",
            "twinspark_engine.runner.runner",
            "            if slot in self._slots:\n                self._free(slot)\n",
            "            if slot in self._slots:\n"
            "                is_in_prompt = self._slots[slot].is_prefilling\n"
            "                self._free(slot)\n                if is_in_prompt:\n"
            "                    self._state.reset_slot(min(self._slots, default=slot))\n",
        ),
    ),
    GateFault(
        "cancel",
        "of the KV blocks are in use",
        Fault(
            "the blocks of a cancelled request are lost",
            "twinspark_engine.scheduler.scheduler",
            "        for slot in cancelled:\n            self._free(slot)\n",
            "        for slot in cancelled:\n            del self._slots[slot]\n"
            "            self._reservations._tables[slot] = None\n",
        ),
    ),
    GateFault(
        "lone-slot",
        "differ; slot",
        Fault(
            "a slot begins with what its last request left",
            "twinspark_engine.model.state",
            "self.recurrent[slot].zero_()",
            "self.recurrent[slot].mul_(1.0)",
        ),
    ),
    GateFault(
        "constrained",
        "a request was answered with 400",
        Fault(
            "no mask is applied",
            "twinspark_engine.runner.sampling.masks",
            "logits.index_copy_(0, index, logits[index].masked_fill_(is_masked, -torch.inf))",
            "logits.index_copy_(0, index, logits[index].masked_fill_(is_masked & False, -torch.inf))",
        ),
    ),
    GateFault(
        "constrained",
        ", at once: ",
        Fault(
            "rows under masks are flatter the more there are",
            "twinspark_engine.runner.sampling.masks",
            "logits.index_copy_(0, index, logits[index].masked_fill_(is_masked, -torch.inf))",
            "logits.index_copy_(0, index, logits[index].masked_fill_(is_masked, -torch.inf).div_(len(places)))",
        ),
    ),
    GateFault(
        "constrained",
        "the reply is not of this form: ",
        Fault(
            "the form begins before the thinking ends",
            "twinspark_engine.masks.client",
            "if grammar.starts_after_thinking else",
            "if grammar.starts_after_thinking is None else",
        ),
    ),
    GateFault(
        "load",
        "differ; request",
        Fault(
            "one carry shared by two members of a crowd",
            "twinspark_kernels.kda.reference",
            "M = state.index_select(0, index)",
            "M = state.index_select(0, index[:1].expand_as(index))",
        ),
    ),
    GateFault(
        "load",
        "engine_used_kv_blocks",
        Fault(
            "the blocks of those who leave are lost",
            "twinspark_engine.scheduler.scheduler",
            "        for slot in cancelled:\n            self._free(slot)\n",
            "        for slot in cancelled:\n            del self._slots[slot]\n"
            "            self._reservations._tables[slot] = None\n",
        ),
    ),
    GateFault(
        "load",
        "engine_asyncio_tasks",
        Fault(
            "a task of each request is left",
            SERVICER,
            SUBMIT,
            f"{SUBMIT}        asyncio.ensure_future(asyncio.sleep(10**6))\n",
        ),
    ),
    GateFault(
        "load",
        "descriptors of rank 0 and resident bytes of rank 0 grew",
        Fault(
            "a descriptor and a megabyte of each request are kept",
            SERVICER,
            SUBMIT,
            f"{SUBMIT}        kept = self.__dict__.setdefault('kept', [])\n"
            "        kept.append((open('/dev/null'), b'x' * 2**20))\n",
        ),
    ),
)
