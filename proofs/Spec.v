(** What is claimed: OpenFlow switches, a lossless network of them, and deadlock in it.

    Only this file has to be read to know what an accepted proof file means. *)
From Coq Require Import NArith List Bool Permutation.
Import ListNotations.
Open Scope N_scope.
Open Scope bool_scope.

(** * Frames and rules *)

(** A VLAN tag: vlan_vid as OpenFlow has it, with the bit 0x1000, and the priority. *)
Definition tag := (N * N)%type.
Definition stack := list tag.
Record frame := Frame { dst : N; src : N; tags : stack }.

Definition vid (ts : stack) : N := match ts with [] => 0 | (v, _) :: _ => v end.
Definition pcp (ts : stack) : N := match ts with [] => 0 | (_, p) :: _ => p end.

(** A value and a mask: which numbers are meant. *)
Definition pattern := (N * N)%type.
Definition fits (p : pattern) (x : N) : bool := N.land (N.lxor x (fst p)) (snd p) =? 0.

Inductive action :=
| Push | Pop | SetVid (v : N) | SetPcp (p : N) | Output (port : N) | Back | Group (g : N).

Record rule := Rule {
  r_port : pattern; r_dst : pattern; r_src : pattern;
  r_vid : pattern; r_pcp : pattern; r_meta : pattern;
  r_more : bool; (* it tests more of frames than is described here: it may match, or not *)
  r_acts : list action; r_goto : option nat;
  r_write : pattern; r_writes : list pattern (* one of these is written to the metadata *) }.

(** A table: the rules of the highest priority first, those of one priority together. *)
Definition table := list (list rule).

(** A group of buckets: all of them; any one at a time (type select); or the first one whose port is
    live (type fast-failover: a bucket has a port that it watches). *)
Inductive group :=
| All (l : list (list action)) | Select (l : list (list action))
| Failover (l : list (N * list action)).

(** What a switch holds. Ports are [down] that it has seen to be down: what it sends there is lost. *)
Record switch := Switch { tables : list table; groups : list (N * group); down : list N }.
Definition is_down (sw : switch) (port : N) : bool := existsb (N.eqb port) (down sw).

Definition matches (r : rule) (port meta : N) (d s : N) (ts : stack) : bool :=
  fits (r_port r) port && fits (r_meta r) meta && fits (r_vid r) (vid ts)
  && fits (r_pcp r) (pcp ts) && fits (r_dst r) d && fits (r_src r) s.

Definition copy := (N * stack)%type.   (* an output port, and the tags of what leaves there *)

(** Actions, in order: the tags afterwards, and the copies. None: it is not defined here what the
    switch does. *)
Definition effects := option (stack * list copy).

Fixpoint bucket (port : N) (acts : list action) (ts : stack) (out : list copy) : effects :=
  match acts with
  | [] => Some (ts, out)
  | Push :: more =>
      bucket port more (match ts with [] => [(4096, 0)] | top :: _ => top :: ts end) out
  | Pop :: more => match ts with [] => None | _ :: below => bucket port more below out end
  | SetVid v :: more =>
      match ts with [] => None | (_, p) :: below => bucket port more ((v, p) :: below) out end
  | SetPcp p :: more =>
      match ts with [] => None | (v, _) :: below => bucket port more ((v, p) :: below) out end
  | Output to :: more =>   (* never back to where it came from: OpenFlow 1.3, 5.12 *)
      bucket port more ts (if to =? port then out else out ++ [(to, ts)])
  | Back :: more => bucket port more ts (out ++ [(port, ts)])   (* to the port IN_PORT *)
  | Group _ :: _ => None
  end.

Fixpoint buckets (port : N) (all : list (list action)) (ts : stack) (out : list copy)
  : option (list copy) :=
  match all with
  | [] => Some out
  | one :: more =>
      match bucket port one ts out with None => None | Some (_, out) => buckets port more ts out end
  end.

Fixpoint group_of (g : N) (all : list (N * group)) : option group :=
  match all with
  | [] => None
  | (number, content) :: more => if g =? number then Some content else group_of g more
  end.

(** The same with groups: the effects that are possible. *)
Fixpoint apply (sw : switch) (port : N) (acts : list action) (ts : stack) (out : list copy)
  : list effects :=
  match acts with
  | [] => [Some (ts, out)]
  | Group g :: more =>
      match group_of g (groups sw) with
      | None => [None]
      | Some (All content) =>
          match buckets port content ts out with
          | None => [None]
          | Some out => apply sw port more ts out
          end
      | Some (Select []) => apply sw port more ts out
      | Some (Select content) =>
          flat_map (fun one => match bucket port one ts out with
                               | None => [None]
                               | Some (_, out) => apply sw port more ts out
                               end) content
      | Some (Failover content) =>
          match find (fun one => negb (is_down sw (fst one))) content with
          | None => apply sw port more ts out
          | Some (_, one) => match bucket port one ts out with
                             | None => [None]
                             | Some (_, out) => apply sw port more ts out
                             end
          end
      end
  | one :: more =>
      match bucket port [one] ts out with
      | None => [None]
      | Some (ts, out) => apply sw port more ts out
      end
  end.

Definition written (w : pattern) (meta : N) : N :=
  N.lor (N.ldiff meta (snd w)) (N.land (fst w) (snd w)).

Definition certain (r : rule) (port meta d s : N) (ts : stack) : bool :=
  negb (r_more r) && matches r port meta d s ts.

(** One rule of a table that may count: of the highest priority that matches. *)
Definition may_count (t : table) (r : rule) (port meta d s : N) (ts : stack) : Prop :=
  exists higher level lower, t = higher ++ level :: lower
  /\ (forall l r', In l higher -> In r' l -> certain r' port meta d s ts = false)
  /\ In r level /\ matches r port meta d s ts = true.

Definition missed (t : table) (port meta d s : N) (ts : stack) : Prop :=
  forall l r, In l t -> In r l -> certain r port meta d s ts = false.

(** What a switch may do with a frame, from a table on. It is a relation: of rules of one priority
    that match the same frame, any may count, and so may any effects of its actions. None: it is not
    defined here. *)
Inductive handled (sw : switch) (port : N) (d s : N)
  : nat -> N -> stack -> option (list copy) -> Prop :=
| handled_miss t meta ts :
    missed (nth t (tables sw) []) port meta d s ts -> handled sw port d s t meta ts (Some [])
| handled_end t meta ts r ts' out :
    may_count (nth t (tables sw) []) r port meta d s ts ->
    In (Some (ts', out)) (apply sw port (r_acts r) ts []) -> r_goto r = None ->
    handled sw port d s t meta ts (Some out)
| handled_goto t meta ts r ts' out t' w result :
    may_count (nth t (tables sw) []) r port meta d s ts ->
    In (Some (ts', out)) (apply sw port (r_acts r) ts []) -> r_goto r = Some t' -> (t < t')%nat ->
    In w (r_write r :: r_writes r) ->
    handled sw port d s t' (written w meta) ts' result ->
    handled sw port d s t meta ts (option_map (app out) result)
| handled_backwards t meta ts r t' :
    may_count (nth t (tables sw) []) r port meta d s ts ->
    r_goto r = Some t' -> (t' <= t)%nat -> handled sw port d s t meta ts None
| handled_undefined t meta ts r :
    may_count (nth t (tables sw) []) r port meta d s ts ->
    In None (apply sw port (r_acts r) ts []) -> handled sw port d s t meta ts None.

(** * The network *)

Inductive target := ToHost (h : N) | ToChannel (c : N) | Nowhere.

(** [versions] are what a switch may hold: before and after a change of rules or a failure. Each
    frame may meet any of them at each switch, in any order. *)
Record fabric := Fabric {
  versions : N -> list switch;
  leaving : N -> N -> target;   (* switch, port: what is behind it *)
  entering : N -> N * N;        (* channel: the switch and the port that it enters *)
  may_fail : N -> bool;         (* channel: what is to leave on it may be lost *)
  from_host : N -> N;           (* host: its channel into its switch *)
  hosts : list N;
  mac : N -> N;
  broadcast : N;
  queue : N -> N -> N           (* channel, priority: the queue in which frames wait; under PFC one
                                   for each priority (or class), under PAUSE one for a channel *) }.

(** What is left to do for a frame in the buffer of an input: copies with their targets. *)
Definition out := (target * stack)%type.
Definition resolved (fab : fabric) (s : N) (sw : switch) (c : copy) : out :=
  (if is_down sw (fst c) then Nowhere else leaving fab s (fst c), snd c).

(** [result]: what a switch may do with a frame that enters by a channel, with what it holds. *)
Definition enters (fab : fabric) (c d s : N) (ts : stack) (sw : switch)
  (result : option (list copy)) : Prop :=
  In sw (versions fab (fst (entering fab c)))
  /\ handled sw (snd (entering fab c)) d s 0 0 ts result.

Definition undefined (fab : fabric) (c d s : N) (ts : stack) : Prop :=
  exists sw, enters fab c d s ts sw None.

Definition arrives (fab : fabric) (c d s : N) (ts : stack) (outs : list out) : Prop :=
  exists sw copies, enters fab c d s ts sw (Some copies)
  /\ outs = map (resolved fab (fst (entering fab c)) sw) copies.

Definition queue_of (fab : fabric) (c : N) (ts : stack) : N := queue fab c (pcp ts).

(** A frame in a buffer: its queue, its addresses, and the copies that have not left yet. *)
Record item := Item { at_queue : N; i_dst : N; i_src : N; pending : list out }.

(** Who received what: the host and the addresses in the frame. *)
Definition receipt := (N * (N * N))%type.
Record state := State {
  items : list item;            (* of each queue, the oldest first *)
  log : list receipt;           (* what hosts have received, untagged *)
  sent : list receipt           (* what hosts have sent *) }.

Definition waiting_in (q : N) (l : list item) : list item :=
  filter (fun i => at_queue i =? q) l.

Definition can_be_lost (fab : fabric) (t : target) : bool :=
  match t with Nowhere => true | ToChannel c => may_fail fab c | ToHost _ => false end.

(** [may] says which items of a queue may be served: the head only, or any. *)
Section Moves.
  Variables (fab : fabric) (room : N -> nat) (may : list item -> item -> Prop).

  Inductive move : state -> state -> Prop :=
  | move_free l1 i l2 lg st :
      may l1 i -> pending i = [] ->
      move (State (l1 ++ i :: l2) lg st) (State (l1 ++ l2) lg st)
  | move_lost l1 i l2 lg st p1 p2 t ts :
      may l1 i -> pending i = p1 ++ (t, ts) :: p2 -> can_be_lost fab t = true ->
      move (State (l1 ++ i :: l2) lg st)
           (State (l1 ++ Item (at_queue i) (i_dst i) (i_src i) (p1 ++ p2) :: l2) lg st)
  | move_deliver l1 i l2 lg st p1 p2 ts h :
      may l1 i -> pending i = p1 ++ (ToHost h, ts) :: p2 ->
      move (State (l1 ++ i :: l2) lg st)
           (State (l1 ++ Item (at_queue i) (i_dst i) (i_src i) (p1 ++ p2) :: l2)
                  (match ts with [] => (h, (i_dst i, i_src i)) :: lg | _ => lg end) st)
  | move_pass l1 i l2 lg st p1 p2 ts c outs :
      may l1 i -> pending i = p1 ++ (ToChannel c, ts) :: p2 ->
      (length (waiting_in (queue_of fab c ts) (l1 ++ i :: l2)) < room (queue_of fab c ts))%nat ->
      arrives fab c (i_dst i) (i_src i) ts outs ->
      move (State (l1 ++ i :: l2) lg st)
           (State (l1 ++ Item (at_queue i) (i_dst i) (i_src i) (p1 ++ p2) :: l2
                      ++ [Item (queue_of fab c ts) (i_dst i) (i_src i) outs]) lg st).
End Moves.

Definition any_item (l1 : list item) (i : item) : Prop := True.
Definition head_only (l1 : list item) (i : item) : Prop :=
  forall j, In j l1 -> at_queue j <> at_queue i.

(** The frames that each host may send. *)
Definition sending := N -> frame -> Prop.

(** Untagged, with the own address, to one of [addresses]. *)
Definition own_frames (fab : fabric) (addresses : N -> Prop) : sending :=
  fun h f => addresses (dst f) /\ src f = mac fab h /\ tags f = [].

(** To any address; with [forge], from any address; with [tag], with any number of any tags. *)
Definition any_frames (fab : fabric) (forge tag : bool) : sending :=
  fun h f => dst f < 2 ^ 48
  /\ (if forge then src f < 2 ^ 48 else src f = mac fab h)
  /\ (if tag then Forall (fun t => 4096 <= fst t < 8192 /\ snd t < 8) (tags f) else tags f = []).

(** A host sends a frame. *)
Inductive inject (fab : fabric) (sends : sending) : state -> state -> Prop :=
| injected l lg st h f outs :
    In h (hosts fab) -> sends h f ->
    arrives fab (from_host fab h) (dst f) (src f) (tags f) outs ->
    inject fab sends (State l lg st)
      (State (l ++ [Item (queue_of fab (from_host fab h) (tags f)) (dst f) (src f) outs]) lg
             ((h, (dst f, src f)) :: st)).

Inductive reachable (fab : fabric) (room : N -> nat) (sends : sending) : state -> Prop :=
| reach_empty : reachable fab room sends (State [] [] [])
| reach_inject s s' :
    reachable fab room sends s -> inject fab sends s s' -> reachable fab room sends s'
| reach_move s s' :
    reachable fab room sends s -> move fab room any_item s s' -> reachable fab room sends s'.

(** * What is claimed *)

(** A deadlock: queues of which each holds a frame (not even the first one) that waits for another
    of these queues. All usual definitions (knots of full buffers with such a frame at their heads)
    are special cases. *)
Definition deadlock (fab : fabric) (s : state) (stuck : N -> Prop) : Prop :=
  (exists q, stuck q) /\
  forall q, stuck q ->
    exists i c ts, In i (items s) /\ at_queue i = q /\ In (ToChannel c, ts) (pending i)
      /\ stuck (queue_of fab c ts).

(** Who is to receive a frame from a host; None: nobody expects it anywhere. *)
Definition is_host (fab : fabric) (d h : N) : bool := mac fab h =? d.
Definition wanted (fab : fabric) (h d : N) : option (list N) :=
  if d =? broadcast fab then Some (filter (fun r => negb (r =? h)) (hosts fab))
  else if mac fab h =? d then None
  else match filter (is_host fab d) (hosts fab) with [] => None | l => Some l end.

(** How often it can move at most, until all frames in it have arrived. *)
Definition settles_within (fab : fabric) (room : N -> nat) (s : state) (n : nat) : Prop :=
  forall k (path : nat -> state), path 0%nat = s ->
    (forall j, (j < k)%nat -> move fab room any_item (path j) (path (S j))) -> (k <= n)%nat.

(** What is claimed whether frames reach anybody or not. *)
Record deadlock_free (fab : fabric) (sends : sending) : Prop := Deadlock_free {
  (** Each host can send each of its frames in any state: the claims below are about something. *)
  can_send : forall l lg st h f, In h (hosts fab) -> sends h f ->
    exists s', inject fab sends (State l lg st) s' /\ sent s' = (h, (dst f, src f)) :: st;
  (** What switches do with a frame is defined, wherever it comes. *)
  defined_at_first : forall h f, In h (hosts fab) -> sends h f ->
    ~ undefined fab (from_host fab h) (dst f) (src f) (tags f);
  defined : forall room s i c ts, reachable fab room sends s ->
    In i (items s) -> In (ToChannel c, ts) (pending i) ->
    ~ undefined fab c (i_dst i) (i_src i) ts;
  (** No state that can be reached is deadlocked, whatever the sizes of the buffers. *)
  never_deadlocks : forall room s stuck,
    reachable fab room sends s -> ~ deadlock fab s stuck;
  (** As long as there are frames, the head of some queue can move, if each queue has room for one
      frame. *)
  always_moves : forall room s,
    (forall q, (0 < room q)%nat) -> reachable fab room sends s -> items s <> [] ->
    exists s', move fab room head_only s s';
  (** If hosts stop sending, the network is empty after a bounded number of moves: no frame loops. *)
  settles : forall room s, reachable fab room sends s ->
    exists n, settles_within fab room s n }.

Record safe (fab : fabric) (sends : sending) : Prop := Safe {
  without_delivery : deadlock_free fab sends;
  (** When the network is empty, each frame that was sent has reached exactly those that are to
      receive it. *)
  delivers : forall room s, reachable fab room sends s -> items s = [] ->
    exists receivers : list (list N),
      Forall2 (fun r l => forall w, wanted fab (fst r) (fst (snd r)) = Some w -> Permutation w l)
              (sent s) receivers
      /\ Permutation (log s)
           (concat (map (fun p => map (fun h => (h, snd (fst p))) (snd p))
                        (combine (sent s) receivers))) }.
