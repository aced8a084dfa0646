// Lines and discs, drawn pixel by pixel where the browser has no graphics processor.
// Software WebGL prepares each line for a graphics processor: it takes over ten times as long.

interface Line {
  from: number;
  to: number;
  color: string;
  /** In pixels of the page. */
  width: number;
}

interface Disc {
  color: string;
  radius: number;
}

/** A canvas that fills a box, below what else is in it. */
export class Pixels {
  private readonly canvas = document.createElement("canvas");
  private readonly context = this.canvas.getContext("2d");
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private readonly colours = new Map<string, number>();

  constructor(private readonly box: HTMLElement) {
    this.canvas.className = "pixels";
    box.prepend(this.canvas);
  }

  remove(): void {
    this.canvas.remove();
  }

  /**
   * Draws lines in their order, then discs. `places` has x and y of each disc, in pixels of the
   * page; the ends of lines are indices of discs.
   */
  draw(places: Float32Array, lines: Line[], discs: Disc[]): void {
    const ratio = devicePixelRatio;
    const image = this.clear(ratio);
    if (image === null) return;
    for (const { from, to, color, width } of lines) {
      this.line(
        ratio * (places[2 * from] ?? 0), ratio * (places[2 * from + 1] ?? 0),
        ratio * (places[2 * to] ?? 0), ratio * (places[2 * to + 1] ?? 0),
        Math.max(1, Math.round(ratio * width)), this.colour(color),
      );
    }
    discs.forEach(({ color, radius }, i) => this.disc(
      ratio * (places[2 * i] ?? 0), ratio * (places[2 * i + 1] ?? 0), ratio * radius,
      this.colour(color),
    ));
    this.context?.putImageData(image, 0, 0);
  }

  private clear(ratio: number): ImageData | null {
    const width = Math.round(ratio * this.box.clientWidth);
    const height = Math.round(ratio * this.box.clientHeight);
    if (width === 0 || height === 0) return null;
    if (this.image?.width !== width || this.image.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(0);
    return this.image;
  }

  /** One step for each pixel along the longer side, `width` pixels across. */
  private line(
    x0: number, y0: number, x1: number, y1: number, width: number, colour: number,
  ): void {
    const { pixels, canvas } = this;
    const flat = Math.abs(x1 - x0) >= Math.abs(y1 - y0);
    const [along, across] = flat ? [1, canvas.width] : [canvas.width, 1];
    const [longest, widest] = flat ? [canvas.width, canvas.height] : [canvas.height, canvas.width];
    let [u0, v0, u1, v1] = flat ? [x0, y0, x1, y1] : [y0, x0, y1, x1];
    if (u0 > u1) [u0, v0, u1, v1] = [u1, v1, u0, v0];
    const slope = u1 > u0 ? (v1 - v0) / (u1 - u0) : 0;
    const first = Math.max(0, Math.round(u0));
    const last = Math.min(longest - 1, Math.round(u1));
    // In 65536ths of a pixel, as integers: most of the time of a picture is spent here.
    let v = Math.round(65536 * (v0 + slope * (first - u0) - (width - 1) / 2 + 0.5));
    const step = Math.round(65536 * slope);
    for (let k = 0; k < width; k += 1, v += 65536) {
      for (let u = first, at = v; u <= last; u += 1, at += step) {
        const w = at >> 16;
        if (w >= 0 && w < widest) pixels[u * along + w * across] = colour;
      }
    }
  }

  private disc(x: number, y: number, radius: number, colour: number): void {
    const { width, height } = this.canvas;
    const bottom = Math.min(height - 1, Math.floor(y + radius));
    for (let row = Math.max(0, Math.ceil(y - radius)); row <= bottom; row += 1) {
      const half = Math.sqrt(radius * radius - (row - y) * (row - y));
      const left = Math.max(0, Math.ceil(x - half));
      const right = Math.min(width - 1, Math.floor(x + half));
      if (left <= right) this.pixels.fill(colour, row * width + left, row * width + right + 1);
    }
  }

  /** A colour `#rrggbb` as the bytes red, green, blue, opaque (all machines are little-endian). */
  private colour(text: string): number {
    let found = this.colours.get(text);
    if (found === undefined) {
      const rgb = parseInt(text.slice(1), 16);
      found = 0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16);
      this.colours.set(text, found);
    }
    return found;
  }
}
