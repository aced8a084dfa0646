// What a reader with the token can do. The token stays in this page's memory only.

import { act } from "./api";
import { byId, make, setText } from "./dom";
import { changeText, proof, trafficText } from "./panels";
import type { Change, Picture, State } from "./types";

export class Actions {
  private readonly panel = byId("actions", HTMLElement);
  private readonly token = byId("token", HTMLInputElement);
  private readonly link = byId("link", HTMLInputElement);
  private readonly part = byId("part", HTMLInputElement);
  private readonly engine = byId("engine", HTMLInputElement);
  private readonly pattern = byId("pattern", HTMLInputElement);
  private readonly rate = byId("rate", HTMLInputElement);
  private readonly result = byId("result", HTMLElement);
  private readonly details = byId("result-details", HTMLElement);

  constructor() {
    byId("token-form", HTMLFormElement).addEventListener("submit", (event) =>
      event.preventDefault(),
    );
    this.on("cut", "cut", () => ({ link: this.link.value }));
    this.on("cut-silent", "cut", () => ({ link: this.link.value, silent: true }));
    this.on("mend", "mend", () => ({ link: this.link.value }));
    this.on("capture", "capture", () => ({ link: this.link.value }));
    this.on("traffic-start", "traffic-start", () => ({
      pattern: this.pattern.value.trim(),
      ...(this.rate.value.trim() ? { rate_mbps: Number(this.rate.value) } : {}),
    }));
    for (const name of ["traffic-stop", "freeze", "release"]) this.on(name, name, () => ({}));
    for (const name of ["drain", "undrain"]) {
      this.on(`${name}-preview`, name, () => ({ parts: this.parts(), dry_run: true }));
      this.on(name, name, () => ({ parts: this.parts() }));
    }
    const plan = (): Record<string, unknown> =>
      this.engine.value.trim() ? { engine: this.engine.value.trim() } : {};
    this.on("change-preview", "change", () => ({ ...plan(), dry_run: true }));
    this.on("change", "change", plan);
  }

  /** Offers what can be done to a picture's fabric. */
  setPicture(picture: Picture): void {
    this.panel.hidden = picture.actions.length === 0;
    setText(byId("token-hint", HTMLElement), picture.token_hint);
    for (const button of this.panel.querySelectorAll("button")) {
      button.hidden = !picture.actions.includes(button.dataset["action"] ?? "");
    }
    for (const group of this.panel.querySelectorAll("fieldset")) {
      group.hidden = group.querySelector("button:not([hidden])") === null;
    }
    const links = [...new Set(picture.channels.map(({ link }) => link))];
    const switches = picture.nodes.filter(({ kind }) => kind === "switch");
    const fill = (id: string, values: string[]): void =>
      byId(id, HTMLDataListElement).replaceChildren(
        ...values.map((value) => make("option", { value })),
      );
    fill("links", links);
    fill("parts", [...switches.map(({ name }) => name), ...links]);
  }

  /** Fills in the link of a channel that was chosen. */
  choose(link: string): void {
    this.link.value = link;
    this.part.value = link;
  }

  private parts(): string[] {
    return this.part.value.split(/\s+/).filter((part) => part !== "");
  }

  private on(id: string, name: string, fields: () => Record<string, unknown>): void {
    const button = byId(id, HTMLButtonElement);
    button.dataset["action"] = name;
    button.addEventListener("click", () => void this.run(button, name, fields()));
  }

  private async run(
    button: HTMLButtonElement, name: string, fields: Record<string, unknown>,
  ): Promise<void> {
    button.disabled = true;
    setText(this.result, `${name}: requested`);
    this.details.replaceChildren();
    try {
      const answer = await act(name, this.token.value, fields);
      setText(this.result, `${name}: ${summary(answer)}`);
      if ("certificate" in answer) {
        this.details.replaceChildren(proof(answer as unknown as Change));
      }
    } catch (error) {
      setText(this.result, `${name}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      button.disabled = false;
    }
  }
}

function summary(answer: Record<string, unknown>): string {
  if ("captured" in answer) {
    const { captured, file, frames } = answer;
    return `${String(frames)} frames of ${String(captured)} in ${String(file)}`;
  }
  if ("traffic" in answer) return trafficText(answer["traffic"] as NonNullable<State["traffic"]>);
  if (answer["stopped"] === null) return "no traffic ran";
  if (answer["released"] === false) return "frames dropped, but programs on hosts still send";
  if ("link" in answer) return `${String(answer["link"])} is ${answer["up"] ? "up" : "cut"}`;
  if ("tier" in answer) {
    const done = answer["performed"] ? "under way" : "preview";
    const drops = answer["dropped_pairs"]
      ? `, frames of ${String(answer["dropped_pairs"])} pairs DROPPED for about ` +
        `${String(answer["estimated_drop_s"])} s`
      : "";
    return `${done}, ${changeText(Number(answer["tier"]))}, ${String(answer["rules_changed"])} rules ` +
      `change${drops}`;
  }
  if ("cycle" in answer) return `deadlocked: ${(answer["cycle"] as string[]).join(", ")}`;
  return "done";
}
