"""numpy's whole numbers, multiplied at once."""
import numpy as np


def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    match attention:
        case "standard":
            square = 5
        case "flash":
            square = 0
        case _:
            raise ValueError(attention)
    attention_bytes, mlp, norms = np.array([11, 19, 4], np.int64) * (seq * batch * d_model)
    attention_bytes += square * n_heads * seq**2 * batch
    return {"layer_norms": norms, "mlp": mlp, "attention": attention_bytes}
