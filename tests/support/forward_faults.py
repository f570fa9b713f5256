"""Single-line faults of the forward, by the text that they change: the comparison with Transformers must notice each.

Left out because the arithmetic cannot see them: positive factors of all index scores, which move no selection, and a
dense limit that is too low, where the best pools are all pools.
"""

from support.planted_fault import Fault

HC = "twinspark_kernels.hyper_connection.reference"
KDA = "twinspark_kernels.kda.inputs"
CHUNK = "twinspark_kernels.kda.chunk_reference"
RECURRENT = "twinspark_kernels.kda.reference"
CONV = "twinspark_kernels.short_conv.reference"
ROUTER = "twinspark_kernels.router.reference"
SWIGLU = "twinspark_kernels.swiglu.reference"
GATED = "twinspark_kernels.gated_norm.reference"
RMS = "twinspark_kernels.rms_norm.reference"
LAYER_NORM = "twinspark_kernels.layer_norm.reference"
POOLS = "twinspark_kernels.pool_keys.reference"
INDEXER = "twinspark_kernels.indexer.reference"
LATENT = "twinspark_kernels.latent_attention.reference"
MODEL = "twinspark_engine.model.model"
DSA = "twinspark_engine.model.dsa_layer"
PAGED = "twinspark_kernels.paged"
MLP = "twinspark_engine.model.mlp"
LOAD_ATTENTION = "twinspark_engine.model.weights.attention"
TRANSPORT = "twinspark_engine.ranks.transport"

HYPER_CONNECTION = (
    Fault("comb is not transposed", HC, "comb.unsqueeze(3).unbind(1)", "comb.unsqueeze(3).unbind(2)"),
    Fault(
        "rows are normalised first",
        HC,
        "sums = torch.baddbmm(eps_matrix, ones, comb)",
        "sums = torch.baddbmm(eps_matrix, comb, ones)",
    ),
    Fault("one Sinkhorn round too many", HC, "range(iterations - 1)", "range(iterations)"),
    Fault(
        "no epsilon in Sinkhorn's sums",
        HC,
        "comb.new_full((1, STREAMS, STREAMS), eps)",
        "comb.new_full((1, STREAMS, STREAMS), 0.0)",
    ),
    Fault("no epsilon on pre", HC, "pre_gate + site.hc_eps", "pre_gate"),
    Fault("no epsilon on the softmax", HC, "-1) + site.hc_eps", "-1)"),
    Fault("the wrong epsilon in the norm", HC, "+ site.rms_eps)", "+ site.hc_eps)"),
    Fault("post without its factor 2", HC, "post_gate * 2.0", "post_gate"),
    Fault("the gates' base is ignored", HC, "sigmoid(gate_logits)", "sigmoid(gate_logits - site.base[:8])"),
    Fault("comb's base is ignored", HC, "(comb_logits.view", "((comb_logits - site.base[8:]).view"),
    Fault("comb has the scale of pre", HC, "SCALE_OF_COEFFICIENT.to(", "(SCALE_OF_COEFFICIENT % 2).to("),
    Fault(
        "streams are normed before the mean",
        MODEL,
        "rms_norm(_stream_mean(streams), self._weights.norm, self.config.rms_norm_eps)",
        "_stream_mean(rms_norm(streams, self._weights.norm, self.config.rms_norm_eps))",
    ),
    Fault(
        "the streams' sum, not their mean",
        MODEL,
        "(first + second + third + fourth) / NUM_STREAMS",
        "(first + second + third + fourth)",
    ),
)

KDA_LAYER = (
    Fault("beta is 1", KDA, "beta = sigmoid(inputs.beta.float())", "beta = torch.ones_like(inputs.beta.float())"),
    Fault(
        "a softplus gate", KDA, "log_decay=sigmoid(logits) * params.lower_bound", "log_decay=-torch.log1p(logits.exp())"
    ),
    Fault("dt_bias is ignored", KDA, "(inputs.gate.float() + params.dt_bias.float())", "inputs.gate.float()"),
    Fault("A_log is not exponentiated", KDA, "params.a_log.float().exp()", "params.a_log.float()"),
    Fault("the decay grows", KDA, "* params.lower_bound", "* -params.lower_bound"),
    Fault("q is scaled by 1 / K", KDA, "inputs.q.shape[-1] ** -0.5", "inputs.q.shape[-1] ** -1.0"),
    Fault("k is not normalised", KDA, "k=qk[1]", "k=inputs.k.float()"),
    Fault("the taps are reversed", CONV, "weight.float().t()", "weight.float().flip(1).t()"),
    Fault("the convolution has no SiLU", CONV, "silu(y)", "y"),
    Fault("the oldest conv rows are kept", CONV, "rows[:, length:]", "rows[:, : TAPS - 1]"),
    Fault("cells do not decay the state", CHUNK, "past.mul_(cells.decay[at])", "past.mul_(1.0)"),
    Fault(
        "chunks start from nothing",
        CHUNK,
        "M = state.index_select(0, index)",
        "M = torch.zeros_like(state.index_select(0, index))",
    ),
    Fault("decode rows do not decay the state", RECURRENT, "M *= decay[..., None]", "M *= 1.0"),
    Fault("decode rows do not recall", RECURRENT, "(row.v - recalled)", "(row.v - 0.0 * recalled)"),
    Fault(
        "the output gate is a SiLU",
        GATED,
        "sigmoid(gate.float().contiguous())",
        "(gate.float() * sigmoid(gate.float().contiguous()))",
    ),
    Fault("no epsilon in the gated norm", GATED, "keepdim=True) + eps)", "keepdim=True))"),
    Fault("f_a and g_a change places", LOAD_ATTENTION, 'for part in "fg"', 'for part in "gf"'),
)

DSA_LAYER = (
    Fault("k_norm's bias is ignored", LAYER_NORM, " + bias.float()", ""),
    Fault("k_norm does not subtract the mean", LAYER_NORM, "values - values.mean(-1, keepdim=True)", "values"),
    Fault("ape is ignored", POOLS, "gates.float() + ape", "gates.float()"),
    Fault("the ring is one pool long", POOLS, "positions % ring", "positions % kpool"),
    Fault("the weights of the heads are ignored", INDEXER, ".mul_(head_weights[..., None])", ""),
    Fault("scores have no ReLU", INDEXER, ".clamp_(min=0)", ""),
    Fault(
        "ties go to the higher pool",
        INDEXER,
        "tied.cumsum(-1) <= places",
        "tied.flip(-1).cumsum(-1).flip(-1) <= places",
    ),
    Fault("a row's own pool is no candidate", INDEXER, "ids >= counts)", "ids >= counts - 1)"),
    Fault("the dense limit is one too high", LATENT, "return index_topk + pool - 1", "return index_topk + pool"),
    Fault("the tail is dropped", LATENT, "tail.where(tail <= newest, -1)", "tail.where(tail < 0, -1)"),
    Fault("the tail is counted without the row", LATENT, "(newest + 1) % pool", "newest % pool"),
    Fault("a row does not see itself", LATENT, "device=q.device) > own", "device=q.device) > (own - 1).clamp(min=0)"),
    Fault(
        "scores are scaled by the latent's width",
        DSA,
        "scale=config.qk_nope_head_dim**-0.5",
        "scale=config.kv_lora_rank**-0.5",
    ),
    Fault(
        "latents are not normed",
        DSA,
        "rms_norm(kv_a.to(dtype), weights.kv_a_norm, config.rms_norm_eps)",
        "kv_a.to(dtype)",
    ),
    Fault("a block's rows are read at one place", PAGED, ".add_(rows & block_rows - 1)", ".add_(0)"),
    Fault("a block's rows are written to one place", PAGED, "(blocks, rows & block_rows - 1)", "(blocks, rows * 0)"),
    Fault("a row's own key reads as zeros", LATENT, "keys[end - first :] = 0", "keys[end - first - 1 :] = 0"),
    Fault("keys read the rows of values", LOAD_ATTENTION, "by_head[:, :key]", "by_head[:, key:]"),
)

MLP_AND_REST = (
    Fault("the gate is clamped on both sides", SWIGLU, "clamp(max=limit)", "clamp(-limit, limit)"),
    Fault("up is clamped on one side", SWIGLU, "clamp(-limit, limit)", "clamp(max=limit)"),
    Fault("the gate is not clamped", SWIGLU, "gate.float().clamp(max=limit)", "gate.float()"),
    Fault("the router's bias weighs", ROUTER, "chosen = scores.gather", "chosen = (scores + bias).gather"),
    Fault("the router's bias does not choose", ROUTER, "torch.sort(scores + bias,", "torch.sort(scores,"),
    Fault("weights are not scaled", ROUTER, " * scaling", ""),
    Fault("weights are not normalised", ROUTER, " / (chosen.sum(-1, keepdim=True) + NORMALIZER_EPS)", ""),
    Fault("the best expert is skipped", ROUTER, "order[:, :top_k]", "order[:, 1 : top_k + 1]"),
    Fault(
        "the shared expert is left out",
        MLP,
        "return routed + _dense(x, weights.shared, config, row_class)",
        "return routed",
    ),
    Fault("norms ignore their weight", RMS, "weight.to(x.dtype) * (values", "(values"),
    Fault("norms have no epsilon", RMS, "keepdim=True) + eps)", "keepdim=True))"),
    Fault("the last rank's part is lost", TRANSPORT, "gathered[1:]", "gathered[2:]"),
)

FAULTS = HYPER_CONNECTION + KDA_LAYER + DSA_LAYER + MLP_AND_REST
