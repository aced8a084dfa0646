// The table of all channels: everything that the picture shows, as text.

import { type Priority, type Values, condition } from "./channels";
import { bytes, make, percent, setText } from "./dom";
import type { Picture } from "./types";

const PAGE = 100;
const RANKS = { cycle: 0, member: 1, "": 2 };
const NONE: Priority = { priority: -1, load: 0, paused: 0, queue: 0, buffer: 0 };

interface Line {
  channel: number;
  name: string;
  route: string;
  state: string;
  of: Priority;
  dropped: number;
  /** Channels of a knot come first, whatever else sorts. */
  rank: number;
}

interface Column {
  title: string;
  /** What the column sorts by; numbers sort downwards first. */
  value(line: Line): number | string;
  text(line: Line): string;
}

const COLUMNS: Column[] = [
  { title: "Channel", value: (line) => line.channel, text: (line) => line.name },
  { title: "From, to", value: (line) => line.route, text: (line) => line.route },
  { title: "State", value: (line) => line.state, text: (line) => line.state },
  {
    title: "Prio",
    value: (line) => line.of.priority,
    text: (line) => (line.of.priority < 0 ? "-" : String(line.of.priority)),
  },
  { title: "Load %", value: (line) => line.of.load, text: (line) => percent(line.of.load) },
  // Paused, or under credits: the first frame waits for credit.
  { title: "Held %", value: (line) => line.of.paused, text: (line) => percent(line.of.paused) },
  { title: "Queue", value: (line) => line.of.queue, text: (line) => bytes(line.of.queue) },
  { title: "Buffer", value: (line) => line.of.buffer, text: (line) => bytes(line.of.buffer) },
  { title: "Dropped", value: (line) => line.dropped, text: (line) => String(line.dropped) },
];

export class Table {
  private lines: Line[] = [];
  private sortBy = 0;
  private upwards = true;
  private limit = PAGE;
  private selected = -1;
  private readonly buttons: HTMLButtonElement[] = [];
  private readonly body = make("tbody");

  /** `choose` receives the index of a channel whose row is activated. */
  constructor(
    table: HTMLTableElement,
    private readonly search: HTMLInputElement,
    private readonly active: HTMLInputElement,
    private readonly count: HTMLElement,
    private readonly more: HTMLButtonElement,
    private readonly choose: (channel: number) => void,
  ) {
    const head = make("tr");
    COLUMNS.forEach((column, i) => {
      const button = make("button", { type: "button" }, column.title);
      button.addEventListener("click", () => this.sort(i));
      this.buttons.push(button);
      head.append(make("th", { scope: "col" }, button));
    });
    table.append(make("thead", {}, head), this.body);
    const again = (): void => {
      this.limit = PAGE;
      this.show();
    };
    search.addEventListener("input", again);
    active.addEventListener("change", again);
    more.addEventListener("click", () => {
      this.limit += PAGE;
      this.show();
    });
    this.markSorted();
  }

  /** Shows the channels of a picture with these values. */
  update(picture: Picture, values: Values[]): void {
    this.lines = picture.channels.flatMap((channel, i): Line[] => {
      const of = values[i];
      if (of === undefined) return [];
      const route = `${channel.from} \u2192 ${channel.to}`;
      const line = { channel: i, name: channel.name, route, state: condition(of), rank: RANKS[of.knot] };
      const priorities = of.priorities.length > 0 ? of.priorities : [NONE];
      return priorities.map((priority) => ({ ...line, of: priority, dropped: of.dropped }));
    });
    this.show();
  }

  /** Marks the rows of a channel. */
  select(channel: number): void {
    this.selected = channel;
    this.show();
  }

  private sort(column: number): void {
    const numeric = column > 2;
    this.upwards = this.sortBy === column ? !this.upwards : !numeric;
    this.sortBy = column;
    this.markSorted();
    this.show();
  }

  private markSorted(): void {
    this.buttons.forEach((button, i) => {
      const order = i !== this.sortBy ? "none" : this.upwards ? "ascending" : "descending";
      button.parentElement?.setAttribute("aria-sort", order);
    });
  }

  private found(): Line[] {
    const wanted = this.search.value.trim().toLowerCase();
    const active = this.active.checked;
    const { value } = COLUMNS[this.sortBy] as Column;
    const sign = this.upwards ? 1 : -1;
    return this.lines
      .filter((line) => !active || line.state !== "idle")
      .filter((line) => wanted === "" || `${line.name} ${line.route} ${line.state}`.toLowerCase().includes(wanted))
      .sort((a, b) => {
        if (a.rank !== b.rank) return a.rank - b.rank;
        const [x, y] = [value(a), value(b)];
        const order = typeof x === "string" ? x.localeCompare(String(y)) : x - Number(y);
        return sign * order || a.channel - b.channel || a.of.priority - b.of.priority;
      });
  }

  /** Cells are reused, so that the focus stays where it is. */
  private show(): void {
    const found = this.found();
    const shown = found.slice(0, this.limit);
    setText(this.count, `${shown.length} of ${found.length} rows`);
    this.more.hidden = shown.length === found.length;
    while (this.body.rows.length > shown.length) this.body.deleteRow(-1);
    while (this.body.rows.length < shown.length) this.body.append(this.row());
    shown.forEach((line, i) => {
      const row = this.body.rows[i] as HTMLTableRowElement;
      row.dataset["channel"] = String(line.channel);
      const classes = `${line.state.replaceAll(" ", "-")}${
        line.channel === this.selected ? " chosen" : ""}`;
      if (row.className !== classes) row.className = classes;
      COLUMNS.forEach((column, j) => {
        const cell = row.cells[j] as HTMLTableCellElement;
        setText(j === 0 ? (cell.firstElementChild ?? cell) : cell, column.text(line));
      });
    });
  }

  private row(): HTMLTableRowElement {
    const row = make("tr");
    const button = make("button", { type: "button" });
    button.addEventListener("click", () => this.choose(Number(row.dataset["channel"])));
    row.append(make("th", { scope: "row" }, button), ...COLUMNS.slice(1).map(() => make("td")));
    return row;
  }
}
