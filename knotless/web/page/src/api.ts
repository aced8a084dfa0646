// Requests to the server.

import type { Change, FabricEvent, Frame, Picture, State, Timeline } from "./types";

async function get<T>(path: string): Promise<T> {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return (await answer.json()) as T;
}

export const picture = (): Promise<Picture> => get("api/picture");
export const timeline = (): Promise<Timeline> => get("api/timeline");
export const changes = (): Promise<{ changes: Change[] }> => get("api/changes");
export const events = (): Promise<FabricEvent[]> => get("api/events");

export function frames(first: number, count: number): Promise<Frame[]> {
  return get(`api/frames?first=${first}&count=${count}`);
}

/** Requests an action; the token is sent in a header. Throws with the server's reason. */
export async function act(
  name: string,
  token: string,
  fields: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const answer = await fetch(`api/actions/${name}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(fields),
  });
  const found = (await answer.json()) as Record<string, unknown>;
  if (!answer.ok) throw new Error(String(found["error"] ?? answer.status));
  return found;
}

export interface Listener {
  open(): void;
  lost(): void;
  picture(): void;
  state(state: State): void;
  frame(frame: Frame): void;
  event(event: FabricEvent): void;
}

/** Follows the server; a connection that is lost is made again every second. */
export function follow(listener: Listener): void {
  const source = new EventSource("api/stream");
  source.onopen = () => listener.open();
  source.onerror = () => {
    listener.lost();
    // The browser itself connects again, except after an answer that is an error.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(listener), 1000);
  };
  const on = (kind: string, see: (data: string) => void): void =>
    source.addEventListener(kind, (message) => see((message as MessageEvent<string>).data));
  on("picture", () => listener.picture());
  on("state", (data) => listener.state(JSON.parse(data) as State));
  on("frame", (data) => listener.frame(JSON.parse(data) as Frame));
  on("event", (data) => listener.event(JSON.parse(data) as FabricEvent));
}
