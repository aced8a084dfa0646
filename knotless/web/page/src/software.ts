// Whether the browser has a graphics processor, and nodes that WebGL does not draw.

import type { Attributes } from "graphology-types";
import { NodePointProgram } from "sigma/rendering";

let known: boolean | null = null;

/** Tells whether WebGL is computed by the processor. */
export function isSoftware(): boolean {
  known ??= found();
  return known;
}

function found(): boolean {
  const gl = document.createElement("canvas").getContext("webgl");
  const names = gl?.getExtension("WEBGL_debug_renderer_info");
  if (gl == null || names == null) return false;
  const name = String(gl.getParameter(names.UNMASKED_RENDERER_WEBGL));
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

/** Nodes that something else draws: they have places and names, but no pixels. */
export class UndrawnNodeProgram<
  N extends Attributes, E extends Attributes,
> extends NodePointProgram<N, E> {
  protected override renderProgram(): void {
    // Nothing is drawn.
  }
}
