"""A match statement."""


def autocast_dtype(op: str, low: str) -> str:
    match op:
        case "matmul" | "linear" | "conv2d" | "bmm" | "scaled_dot_product_attention":
            return low
        case "softmax" | "log_softmax" | "layer_norm" | "sum" | "exp" | "log" | "norm":
            return "float32"
        case "cross_entropy" | "mse_loss":
            return "float32"
        case _:
            raise ValueError("unknown operator: " + op)
