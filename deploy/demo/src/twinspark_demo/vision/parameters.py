"""Names and shapes of a tower's parameters, as published (below `model.visual.`)."""

from twinspark_demo.vision.shape import VisionShape

Shapes = dict[str, tuple[int, ...]]


def tower_shapes(shape: VisionShape) -> Shapes:
    """Every parameter by name, in the order of the forward."""
    hidden, out = shape.hidden_size, shape.out_hidden_size
    patch, merge = shape.patch_size, shape.spatial_merge_size
    shapes: Shapes = {
        "patch_embed.proj.weight": (hidden, shape.in_channels, shape.temporal_patch_size, patch, patch),
        "patch_embed.proj.bias": (hidden,),
    }
    for block in range(shape.depth):
        shapes |= {f"blocks.{block}.{name}": value for name, value in _block_shapes(shape).items()}
    wide = shape.projection_intermediate_size
    return shapes | {
        "post_layernorm.weight": (hidden,),
        "downsample.weight": (out, hidden, merge, merge),
        "downsample.bias": (out,),
        "merger.proj.weight": (out, out),
        "merger.post_projection_norm.weight": (out,),
        "merger.post_projection_norm.bias": (out,),
        "merger.gate_proj.weight": (wide, out),
        "merger.up_proj.weight": (wide, out),
        "merger.down_proj.weight": (out, wide),
    }


def _block_shapes(shape: VisionShape) -> Shapes:
    hidden, wide = shape.hidden_size, shape.intermediate_size
    return {
        "norm1.weight": (hidden,),
        "attn.qkv.weight": (3 * hidden, hidden),
        "attn.qkv.bias": (3 * hidden,),
        "attn.q_norm.weight": (shape.head_dim,),
        "attn.k_norm.weight": (shape.head_dim,),
        "attn.proj.weight": (hidden, hidden),
        "attn.proj.bias": (hidden,),
        "norm2.weight": (hidden,),
        "mlp.gate_proj.weight": (wide, hidden),
        "mlp.gate_proj.bias": (wide,),
        "mlp.up_proj.weight": (wide, hidden),
        "mlp.up_proj.bias": (wide,),
        "mlp.down_proj.weight": (hidden, wide),
        "mlp.down_proj.bias": (hidden,),
    }
