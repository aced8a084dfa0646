(** The checker: follows classes of frames through the rules, and compares ranks.

    A class of frames is a class of destinations, a cube of sources, and tags. Rules must treat all
    frames of a class alike; a rule that does not makes the checker refuse the class. *)
From Coq Require Import NArith List Bool Mergesort Orders FMapAVL OrderedTypeEx.
From Knotless Require Import Spec.
Import ListNotations.
Open Scope N_scope.
Open Scope bool_scope.

Module Memo := FMapAVL.Make N_as_OT.

Inductive tri := Yes | No | Unknown.

(** Does a pattern fit all, none or some of the numbers of a cube? *)
Definition fits_cube (p cube : pattern) : tri :=
  if N.land (N.land (N.lxor (fst cube) (fst p)) (snd cube)) (snd p) =? 0
  then (if N.ldiff (snd p) (snd cube) =? 0 then Yes else Unknown)
  else No.

(** Destinations: those of a cube but for those of some others. *)
Definition class := (pattern * list pattern)%type.
Definition in_class (c : class) (x : N) : bool :=
  fits (fst c) x && forallb (fun e => negb (fits e x)) (snd c).

(** A pattern that fits numbers of an exception only fits none of the class. *)
Definition fits_class (p : pattern) (c : class) : tri :=
  if existsb (fun e => match fits_cube e p with Yes => true | _ => false end) (snd c) then No
  else fits_cube p (fst c).

Definition tri_and (a : tri) (b : tri) : tri :=
  match a, b with No, _ => No | Yes, b => b | Unknown, No => No | Unknown, _ => Unknown end.

Definition matches_cube (r : rule) (port meta : N) (d : class) (s : pattern) (ts : stack) : tri :=
  if fits (r_port r) port then
    if fits (r_meta r) meta then
      if fits (r_vid r) (vid ts) then
        if fits (r_pcp r) (pcp ts) then
          match fits_class (r_dst r) d with
          | No => No
          | Yes => fits_cube (r_src r) s
          | Unknown => tri_and Unknown (fits_cube (r_src r) s)
          end
        else No
      else No
    else No
  else No.

Inductive choice := Miss | Hit (r : rule) | Unclear.

Definition pattern_eqb (a b : pattern) : bool := (fst a =? fst b) && (snd a =? snd b).

Definition action_eqb (a b : action) : bool :=
  match a, b with
  | Push, Push | Pop, Pop => true
  | SetVid x, SetVid y | SetPcp x, SetPcp y | Output x, Output y | Group x, Group y => x =? y
  | _, _ => false
  end.

Fixpoint actions_eqb (a b : list action) : bool :=
  match a, b with
  | [], [] => true
  | x :: a, y :: b => action_eqb x y && actions_eqb a b
  | _, _ => false
  end.

Definition does_as (a b : rule) : bool :=
  actions_eqb (r_acts a) (r_acts b) && pattern_eqb (r_write a) (r_write b)
  && match r_goto a, r_goto b with
     | None, None => true
     | Some x, Some y => Nat.eqb x y
     | _, _ => false
     end.

(** Whether all rules that may match as well do the same as [r]. *)
Fixpoint no_other (r : rule) (l : list rule) (port meta : N) (d : class) (s : pattern) (ts : stack)
  : bool :=
  match l with
  | [] => true
  | r' :: more =>
      match matches_cube r' port meta d s ts with
      | No => no_other r more port meta d s ts
      | _ => does_as r' r && no_other r more port meta d s ts
      end
  end.

Fixpoint in_level (l : list rule) (port meta : N) (d : class) (s : pattern) (ts : stack) : choice :=
  match l with
  | [] => Miss
  | r :: more =>
      match matches_cube r port meta d s ts with
      | No => in_level more port meta d s ts
      | Yes => if no_other r more port meta d s ts then Hit r else Unclear
      | Unknown => Unclear
      end
  end.

Fixpoint in_table (t : table) (port meta : N) (d : class) (s : pattern) (ts : stack) : choice :=
  match t with
  | [] => Miss
  | level :: lower =>
      match in_level level port meta d s ts with
      | Miss => in_table lower port meta d s ts
      | decided => decided
      end
  end.

(** [fuel]: the number of tables. *)
Fixpoint handle (fuel : nat) (sw : switch) (port : N) (d : class) (s : pattern) (t : nat) (meta : N)
  (ts : stack) : option (list copy) :=
  match in_table (nth t (tables sw) []) port meta d s ts with
  | Miss => Some []
  | Unclear => None
  | Hit r =>
      match apply sw port (r_acts r) ts [] with
      | None => None
      | Some (ts', out) =>
          match r_goto r, fuel with
          | None, _ => Some out
          | Some _, O => None
          | Some t', S fuel =>
              if Nat.ltb t t' then
                match handle fuel sw port d s t' (written (r_write r) meta) ts' with
                | None => None
                | Some out' => Some (out ++ out')
                end
              else None
          end
      end
  end.

(** What a proof file claims: a rank for each queue, and an upper bound of all. *)
Record ranking := Ranking { rank : N -> N; bound : N }.

(** What becomes of a frame: the moves until all of it has arrived, and who receives it. *)
Definition outcome := (N * list N)%type.

Definition tag_eqb (a b : tag) : bool := (fst a =? fst b) && (snd a =? snd b).
Fixpoint stack_eqb (a b : stack) : bool :=
  match a, b with
  | [], [] => true
  | x :: a, y :: b => tag_eqb x y && stack_eqb a b
  | _, _ => false
  end.

Fixpoint assoc (ts : stack) (l : list (stack * outcome)) : option outcome :=
  match l with
  | [] => None
  | (seen, f) :: more => if stack_eqb ts seen then Some f else assoc ts more
  end.

Definition memo := Memo.t (list (stack * outcome)).
Definition recall (m : memo) (c : N) (ts : stack) : option outcome :=
  match Memo.find c m with None => None | Some l => assoc ts l end.
Definition remember (m : memo) (c : N) (ts : stack) (f : outcome) : memo :=
  Memo.add c ((ts, f) :: match Memo.find c m with None => [] | Some l => l end) m.

Section Follow.
  Variables (fab : fabric) (rk : ranking) (max_tables : nat).

  Definition arrive (c : N) (d : class) (s : pattern) (ts : stack) : option (list out) :=
    let (at_switch, port) := entering fab c in
    match handle max_tables (switch_of fab at_switch) port d s 0 0 ts with
    | None => None
    | Some copies => Some (map (resolved fab at_switch) copies)
    end.

  (** [go] follows a frame on a channel. *)
  Fixpoint follow_all (go : memo -> N -> stack -> option (memo * outcome)) (from : N) (m : memo)
    (outs : list out) : option (memo * outcome) :=
    match outs with
    | [] => Some (m, (1, []))
    | (Nowhere, _) :: more =>
        match follow_all go from m more with
        | None => None | Some (m, (k, to)) => Some (m, (1 + k, to))
        end
    | (ToHost h, []) :: more =>
        match follow_all go from m more with
        | None => None | Some (m, (k, to)) => Some (m, (1 + k, h :: to))
        end
    | (ToHost _, _ :: _) :: _ => None
    | (ToChannel c, ts) :: more =>
        let next := rank rk (queue_of fab c ts) in
        if (rank rk from <? next) && (next <=? bound rk) then
          match go m c ts with
          | None => None
          | Some (m, (k, to)) =>
              match follow_all go from m more with
              | None => None | Some (m, (k', to')) => Some (m, (1 + k + k', to ++ to'))
              end
          end
        else None
    end.

  Fixpoint follow (fuel : nat) (d : class) (s : pattern) (m : memo) (c : N) (ts : stack)
    : option (memo * outcome) :=
    match recall m c ts with
    | Some f => Some (m, f)
    | None =>
        match fuel with
        | O => None
        | S fuel =>
            match arrive c d s ts with
            | None => None
            | Some outs =>
                match follow_all (follow fuel d s) (queue_of fab c ts) m outs with
                | None => None
                | Some (m, f) => Some (remember m c ts f, f)
                end
            end
        end
    end.
End Follow.

Module NOrder <: TotalLeBool.
  Definition t := N.
  Definition leb := N.leb.
  Theorem leb_total : forall a b, leb a b = true \/ leb b a = true.
  Proof. intros a b. unfold leb. rewrite !N.leb_le. apply N.le_ge_cases. Qed.
End NOrder.
Module NSort := Sort NOrder.

Fixpoint list_eqb (a b : list N) : bool :=
  match a, b with
  | [], [] => true
  | x :: a, y :: b => (x =? y) && list_eqb a b
  | _, _ => false
  end.

Definition exact : N := N.ones 48.

Section Check.
  Variables (fab : fabric) (rk : ranking) (max_tables fuel : nat).

  (** Whether those who receive what a host sends to a class are those who are to: for the address
      of a host, which is a class of its own, that host; for a class with the broadcast address, and
      none of a host, all others; for classes with neither, any. [of_class]: the hosts whose address
      is in the class. *)
  Definition receives (d : class) (of_class : list N) (h : N) (to : list N) : bool :=
    if in_class d (broadcast fab)
    then list_eqb (NSort.sort (filter (fun r => negb (r =? h)) (hosts fab))) (NSort.sort to)
    else match of_class with
         | [] => true
         | [w] => (w =? h) || match to with [x] => x =? w | _ => false end
         | l => false
         end.

  (** All that hosts send to a class of destinations. [any_source]: rules do not look at sources
      behind the first switch. *)
  Fixpoint from_hosts (any_source : bool) (d : class) (of_class : list N) (m : memo)
    (senders : list N) : bool :=
    match senders with
    | [] => true
    | h :: more =>
        let own := (mac fab h, exact) in
        let s := if any_source then (0, 0) else own in
        let m := if any_source then m else Memo.empty _ in
        match arrive fab max_tables (from_host fab h) d own [] with
        | None => false
        | Some outs =>
            match follow_all fab rk (follow fab rk max_tables fuel d s)
                    (queue_of fab (from_host fab h) []) m outs with
            | None => false
            | Some (m, (_, to)) =>
                receives d of_class h to && from_hosts any_source d of_class m more
            end
        end
    end.

  Definition check_class (d : class) : bool :=
    let of_class := filter (fun h => in_class d (mac fab h)) (hosts fab) in
    match of_class with
    | [] => true
    | [_] => (snd (fst d) =? exact) && negb (in_class d (broadcast fab))
    | _ => false
    end
    && (from_hosts true d of_class (Memo.empty _) (hosts fab)
        || from_hosts false d of_class (Memo.empty _) (hosts fab)).
End Check.

(** A bit that all cubes test, if there is one, else one that the first does, of those undecided.
    Cubes that were made by dividing have one, so that no cube is on both sides of it. *)
Definition dividing_bit (bits : nat) (decided : N) (cubes : list pattern) : N :=
  let common := N.ldiff (fold_left N.land (map snd cubes) (N.ones (N.of_nat bits))) decided in
  let first := N.ldiff (match cubes with [] => 0 | p :: _ => snd p end) decided in
  let tested := if common =? 0 then first else common in
  match find (N.testbit tested) (map N.of_nat (seq 0 bits)) with Some i => i | None => 0 end.

(** Whether cubes contain all numbers that agree with each of them in the decided bits. *)
Fixpoint divided (fuel bits : nat) (decided : N) (cubes : list pattern) : bool :=
  match cubes with
  | [] => false
  | _ :: _ =>
      existsb (fun p => N.ldiff (snd p) decided =? 0) cubes ||
      match fuel with
      | O => false
      | S fuel =>
          let bit := dividing_bit bits decided cubes in
          let side (one : bool) (p : pattern) :=
            negb (N.testbit (snd p) bit) || Bool.eqb (N.testbit (fst p) bit) one in
          divided fuel bits (N.setbit decided bit) (filter (side false) cubes)
          && divided fuel bits (N.setbit decided bit) (filter (side true) cubes)
      end
  end.

(** Whether cubes contain every number of [bits] bits. *)
Definition cover (bits : nat) (cubes : list pattern) : bool := divided bits bits 0 cubes.

Definition check (fab : fabric) (rk : ranking) (max_tables fuel : nat)
  (classes : list class) : bool :=
  forallb (check_class fab rk max_tables fuel) classes.

(** Exceptions have to be the cubes of later classes. *)
Fixpoint exceptions_follow (classes : list class) : bool :=
  match classes with
  | [] => true
  | c :: more =>
      forallb (fun e => existsb (pattern_eqb e) (map fst more)) (snd c) && exceptions_follow more
  end.

(** The same for every address of 48 bits. *)
Definition check_all (fab : fabric) (rk : ranking) (max_tables fuel : nat)
  (classes : list class) : bool :=
  forallb (fun c => snd (fst c) <=? exact) classes && exceptions_follow classes
  && cover 48 (map fst classes) && check fab rk max_tables fuel classes.
