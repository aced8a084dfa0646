(** The proof: what the checker accepts is safe. *)
From Coq Require Import NArith List Bool Permutation Lia Wf_nat.
From Knotless Require Import Spec Checker.
Import ListNotations.
Open Scope N_scope.
Open Scope bool_scope.

(** * Patterns *)

Lemma fits_spec p x :
  fits p x = true <-> forall i, N.testbit (snd p) i = true -> N.testbit x i = N.testbit (fst p) i.
Proof.
  unfold fits. rewrite N.eqb_eq. split.
  - intros H i Hi. assert (B := f_equal (fun n => N.testbit n i) H). cbv beta in B.
    rewrite N.land_spec, N.lxor_spec, N.bits_0, Hi, andb_true_r in B.
    now apply xorb_eq in B.
  - intros H. apply N.bits_inj. intros i.
    rewrite N.land_spec, N.lxor_spec, N.bits_0.
    destruct (N.testbit (snd p) i) eqn:E; [|now rewrite andb_false_r].
    rewrite (H i E), xorb_nilpotent. reflexivity.
Qed.

Lemma fits_self v m : fits (v, m) v = true.
Proof. apply fits_spec. reflexivity. Qed.

Lemma fits_any x : fits (0, 0) x = true.
Proof. apply fits_spec. intros i. cbn. discriminate. Qed.

Lemma fits_cube_yes p c x : fits_cube p c = Yes -> fits c x = true -> fits p x = true.
Proof.
  unfold fits_cube. destruct (N.land _ _ =? 0) eqn:E; [|discriminate].
  destruct (N.ldiff _ _ =? 0) eqn:F; [|discriminate]. intros _ H.
  rewrite fits_spec in H. apply fits_spec. intros i Hi.
  apply N.eqb_eq in E, F.
  assert (B := f_equal (fun n => N.testbit n i) E). cbv beta in B.
  assert (D := f_equal (fun n => N.testbit n i) F). cbv beta in D.
  rewrite N.ldiff_spec, N.bits_0, Hi in D. apply negb_false_iff in D.
  rewrite !N.land_spec, N.lxor_spec, N.bits_0, Hi, D, !andb_true_r in B.
  apply xorb_eq in B. rewrite (H i D). exact B.
Qed.

Lemma fits_cube_no p c x : fits_cube p c = No -> fits c x = true -> fits p x = false.
Proof.
  unfold fits_cube. destruct (N.land _ _ =? 0) eqn:E.
  { destruct (N.ldiff _ _ =? 0); discriminate. }
  intros _ H. destruct (fits p x) eqn:G; [|reflexivity].
  rewrite fits_spec in H, G. exfalso. apply N.eqb_neq in E. apply E.
  apply N.bits_inj. intros i. rewrite !N.land_spec, N.lxor_spec, N.bits_0.
  destruct (N.testbit (snd p) i) eqn:P; [|now rewrite andb_false_r].
  destruct (N.testbit (snd c) i) eqn:C; [|now rewrite andb_false_r].
  now rewrite <- (H i C), <- (G i P), xorb_nilpotent.
Qed.

Lemma fits_class_yes p c x : fits_class p c = Yes -> in_class c x = true -> fits p x = true.
Proof.
  unfold fits_class, in_class. destruct (existsb _ _); [discriminate|].
  rewrite andb_true_iff. intros Y (F & _). eapply fits_cube_yes; eassumption.
Qed.

Lemma fits_class_no p c x : fits_class p c = No -> in_class c x = true -> fits p x = false.
Proof.
  unfold fits_class, in_class. rewrite andb_true_iff. destruct (existsb _ _) eqn:E.
  - intros _ (_ & G). apply existsb_exists in E as (e & I & Y).
    destruct (fits_cube e p) eqn:Z; try discriminate.
    rewrite forallb_forall in G. specialize (G e I). apply negb_true_iff in G.
    destruct (fits p x) eqn:F; [|reflexivity].
    destruct p as (v, m). rewrite (fits_cube_yes _ _ _ Z F) in G. discriminate.
  - intros N (F & _). eapply fits_cube_no; eassumption.
Qed.

(** * Switches *)

Lemma pattern_eqb_eq a b : pattern_eqb a b = true -> a = b.
Proof.
  unfold pattern_eqb. rewrite andb_true_iff, !N.eqb_eq. destruct a, b. cbn. now intros (-> & ->).
Qed.

Lemma actions_eqb_eq a : forall b, actions_eqb a b = true -> a = b.
Proof.
  induction a as [|x a IH]; intros [|y b]; cbn; try easy.
  rewrite andb_true_iff. intros (E & H). rewrite (IH _ H). f_equal.
  destruct x, y; cbn in E; try discriminate; try reflexivity; apply N.eqb_eq in E; now subst.
Qed.

Lemma does_as_eq a b : does_as a b = true ->
  r_acts a = r_acts b /\ r_write a = r_write b /\ r_goto a = r_goto b.
Proof.
  unfold does_as. rewrite !andb_true_iff. intros ((A & W) & G).
  split; [now apply actions_eqb_eq|]. split; [now apply pattern_eqb_eq|].
  destruct (r_goto a), (r_goto b); try discriminate; [|reflexivity].
  apply PeanoNat.Nat.eqb_eq in G. now subst.
Qed.

(** Another rule that may count has the same effect, by [unique]. *)
Ltac same_effect unique :=
  match goal with
  | Counts : may_count _ _ _ _ _ _ _ |- _ =>
      apply unique in Counts as (Acts & Write & Goto); rewrite ?Acts, ?Write, ?Goto in *
  end.

Section Frames.
  Variables (dc : class) (sc : pattern) (d s : N).
  Hypotheses (Hd : in_class dc d = true) (Hs : fits sc s = true).

  Lemma matches_yes r port meta ts :
    matches_cube r port meta dc sc ts = Yes -> matches r port meta d s ts = true.
  Proof.
    unfold matches_cube, matches.
    destruct (fits (r_port r) port); [|discriminate].
    destruct (fits (r_meta r) meta); [|discriminate].
    destruct (fits (r_vid r) (vid ts)); [|discriminate].
    destruct (fits (r_pcp r) (pcp ts)); [|discriminate]. cbn.
    destruct (fits_class (r_dst r) dc) eqn:D; try discriminate.
    - intros S. rewrite (fits_class_yes _ _ _ D Hd), (fits_cube_yes _ _ _ S Hs). reflexivity.
    - destruct (fits_cube (r_src r) sc); discriminate.
  Qed.

  Lemma matches_no r port meta ts :
    matches_cube r port meta dc sc ts = No -> matches r port meta d s ts = false.
  Proof.
    unfold matches_cube, matches.
    destruct (fits (r_port r) port); [|reflexivity].
    destruct (fits (r_meta r) meta); [|reflexivity].
    destruct (fits (r_vid r) (vid ts)); [|reflexivity].
    destruct (fits (r_pcp r) (pcp ts)); [|reflexivity]. cbn.
    destruct (fits_class (r_dst r) dc) eqn:D.
    - intros S. rewrite (fits_cube_no _ _ _ S Hs). apply andb_false_r.
    - intros _. now rewrite (fits_class_no _ _ _ D Hd).
    - destruct (fits_cube (r_src r) sc) eqn:S; try discriminate.
      intros _. rewrite (fits_cube_no _ _ _ S Hs). apply andb_false_r.
  Qed.

  Definition alike (a b : rule) : Prop :=
    r_acts a = r_acts b /\ r_write a = r_write b /\ r_goto a = r_goto b.

  Lemma no_other_sound r0 l port meta ts :
    no_other r0 l port meta dc sc ts = true ->
    forall r, In r l -> matches r port meta d s ts = true -> alike r r0.
  Proof.
    induction l as [|r l IH]; cbn [no_other]; [easy|].
    destruct (matches_cube r port meta dc sc ts) eqn:E.
    - rewrite andb_true_iff. intros (A & H) r' [<-|I] M; [now apply does_as_eq|now apply IH].
    - intros H r' [<-|I] M; [|now apply IH].
      apply matches_no in E. rewrite E in M. discriminate.
    - rewrite andb_true_iff. intros (A & H) r' [<-|I] M; [now apply does_as_eq|now apply IH].
  Qed.

  Lemma in_level_sound l port meta ts :
    match in_level l port meta dc sc ts with
    | Miss => forall r, In r l -> matches r port meta d s ts = false
    | Hit r => In r l /\ matches r port meta d s ts = true
               /\ forall r', In r' l -> matches r' port meta d s ts = true -> alike r' r
    | Unclear => True
    end.
  Proof.
    induction l as [|r l IH]; cbn [in_level]; [easy|].
    destruct (matches_cube r port meta dc sc ts) eqn:E; [| |easy].
    - destruct (no_other r l port meta dc sc ts) eqn:F; [|easy].
      split; [now left|]. split; [now apply matches_yes|].
      intros r' [<-|I] M; [easy|]. now apply (no_other_sound _ _ _ _ _ F).
    - apply matches_no in E.
      destruct (in_level l port meta dc sc ts); [| |easy].
      + intros r' [<-|I]; [easy|now apply IH].
      + destruct IH as (I & M & U). split; [now right|]. split; [easy|].
        intros r' [<-|I'] M'; [congruence|now apply U].
  Qed.

  Lemma in_table_sound t port meta ts :
    match in_table t port meta dc sc ts with
    | Miss => missed t port meta d s ts
    | Hit r => may_count t r port meta d s ts
               /\ forall r', may_count t r' port meta d s ts -> alike r' r
    | Unclear => True
    end.
  Proof.
    induction t as [|l t IH]; cbn; [easy|].
    assert (L := in_level_sound l port meta ts).
    destruct (in_level l port meta dc sc ts) as [|r|]; [| |easy].
    - destruct (in_table t port meta dc sc ts) as [|r|]; [| |easy].
      + intros l' r [<-|I] J; [now apply L|now apply (IH l')].
      + destruct IH as ((hi & lv & lo & -> & N & I & M) & U). split.
        * exists (l :: hi), lv, lo. split; [reflexivity|]. split; [|easy].
          intros l' r' [<-|J] K; [now apply L|now apply (N l')].
        * intros r' (hi' & lv' & lo' & E & N' & I' & M'). destruct hi' as [|l' hi'].
          -- injection E as <- E. rewrite (L r' I') in M'. discriminate.
          -- injection E as <- E. apply U. exists hi', lv', lo'. rewrite E.
             split; [reflexivity|]. split; [|easy].
             intros l' r'' J K. apply (N' l'); [now right|easy].
    - destruct L as (I & M & U). split.
      + exists [], l, t. split; [reflexivity|]. split; [easy|easy].
      + intros r' (hi' & lv' & lo' & E & N' & I' & M'). destruct hi' as [|l' hi'].
        * injection E as <- E. now apply U.
        * injection E as <- E. rewrite (N' l r (or_introl eq_refl) I) in M. discriminate.
  Qed.

  Lemma missed_not_counting t r port meta ts :
    missed t port meta d s ts -> ~ may_count t r port meta d s ts.
  Proof.
    intros H (hi & l & lo & -> & _ & I & M).
    rewrite (H l r) in M; [discriminate| |easy]. apply in_or_app. right. now left.
  Qed.

  Lemma handle_sound fuel sw port : forall t meta ts outs,
    handle fuel sw port dc sc t meta ts = Some outs ->
    handled sw port d s t meta ts outs
    /\ forall outs', handled sw port d s t meta ts outs' -> outs' = outs.
  Proof.
    induction fuel as [|fuel IH]; intros t meta ts outs; cbn [handle];
      assert (T := in_table_sound (nth t (tables sw) []) port meta ts);
      destruct (in_table (nth t (tables sw) []) port meta dc sc ts) as [|r|]; try discriminate.
    1, 3: intros E; injection E as <-; split; [now apply handled_miss|];
      intros outs' H; inversion H; subst; [easy| |];
      exfalso; eapply missed_not_counting; eassumption.
    1, 2: destruct T as (C & U);
      destruct (apply sw port (r_acts r) ts []) as [(ts', out)|] eqn:A; [|discriminate];
      destruct (r_goto r) as [t'|] eqn:G; [try discriminate|].
    - intros E; injection E as <-. split; [eapply handled_end; eassumption|].
      intros outs' H; inversion H; subst.
      + exfalso; eapply missed_not_counting; eassumption.
      + same_effect U. congruence.
      + same_effect U. congruence.
    - destruct (Nat.ltb t t') eqn:L; [|discriminate]. apply PeanoNat.Nat.ltb_lt in L.
      destruct (handle fuel sw port dc sc t' (written (r_write r) meta) ts') as [out'|] eqn:E;
        [|discriminate].
      intros F; injection F as <-. apply IH in E as (E & V).
      split; [eapply handled_goto; eassumption|].
      intros outs' H; inversion H; subst.
      + exfalso; eapply missed_not_counting; eassumption.
      + same_effect U. congruence.
      + same_effect U.
        assert (t'0 = t') by congruence. subst t'0.
        match goal with X : apply _ _ _ _ _ = Some (?a, ?b) |- _ =>
          assert (a = ts') by congruence; assert (b = out) by congruence; subst a b end.
        f_equal. now apply V.
    - intros E; injection E as <-. split; [eapply handled_end; eassumption|].
      intros outs' H; inversion H; subst.
      + exfalso; eapply missed_not_counting; eassumption.
      + same_effect U. congruence.
      + same_effect U. congruence.
  Qed.

  Lemma arrive_sound fab max_tables c ts outs :
    arrive fab max_tables c dc sc ts = Some outs ->
    arrives fab c d s ts outs /\ forall outs', arrives fab c d s ts outs' -> outs' = outs.
  Proof.
    unfold arrive, arrives. destruct (entering fab c) as (sw, port). cbn.
    destruct (handle max_tables (switch_of fab sw) port dc sc 0 0 ts) as [copies|] eqn:E; [|discriminate].
    intros F; injection F as <-. apply handle_sound in E as (H & U). split.
    - exists copies. easy.
    - intros outs' (copies' & H' & ->). now rewrite (U copies' H').
  Qed.
End Frames.

(** * What becomes of frames *)

Section Outcomes.
  Variables (fab : fabric) (rk : ranking).

  Inductive run (d s : N) : N -> stack -> N -> list N -> Prop :=
  | run_on c ts k to outs :
      arrives fab c d s ts outs ->
      (forall outs', arrives fab c d s ts outs' -> outs' = outs) ->
      runs d s (queue_of fab c ts) outs k to ->
      run d s c ts k to
  with runs (d s : N) : N -> list out -> N -> list N -> Prop :=
  | runs_end q : runs d s q [] 1 []
  | runs_lost q ts more k to : runs d s q more k to -> runs d s q ((Nowhere, ts) :: more) (1 + k) to
  | runs_host q h more k to :
      runs d s q more k to -> runs d s q ((ToHost h, []) :: more) (1 + k) (h :: to)
  | runs_channel q c ts more k to k' to' :
      rank rk q < rank rk (queue_of fab c ts) ->
      rank rk (queue_of fab c ts) <= bound rk ->
      run d s c ts k to -> runs d s q more k' to' ->
      runs d s q ((ToChannel c, ts) :: more) (1 + k + k') (to ++ to').

  Lemma runs_none d s q k to : runs d s q [] k to -> k = 1 /\ to = [].
  Proof. intros H. now inversion H. Qed.

  Lemma runs_split_lost d s q ts (p1 p2 : list out) : forall k to,
    runs d s q (p1 ++ (Nowhere, ts) :: p2) k to ->
    exists k', runs d s q (p1 ++ p2) k' to /\ k = 1 + k'.
  Proof.
    induction p1 as [|o p1 IH]; cbn [app]; intros k to H; inversion H; subst.
    - eauto.
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & R & ->) end.
      exists (1 + k1). split; [apply runs_lost, R|lia].
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & R & ->) end.
      exists (1 + k1). split; [apply runs_host, R|lia].
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & R & ->) end.
      eexists. split; [eapply runs_channel; eassumption|lia].
  Qed.

  Lemma runs_split_host d s q h ts (p1 p2 : list out) : forall k to,
    runs d s q (p1 ++ (ToHost h, ts) :: p2) k to ->
    exists k' to', runs d s q (p1 ++ p2) k' to' /\ k = 1 + k' /\ Permutation to (h :: to') /\ ts = [].
  Proof.
    induction p1 as [|o p1 IH]; cbn [app]; intros k to H; inversion H; subst.
    - eauto 8.
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & R & -> & P & ->) end.
      exists (1 + k1), to1. split; [apply runs_lost, R|]. split; [lia|]. split; [exact P|reflexivity].
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & R & -> & P & ->) end.
      eexists _, _. split; [apply runs_host, R|]. split; [lia|]. split; [|reflexivity].
      rewrite P. apply perm_swap.
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & R & -> & P & ->) end.
      eexists _, _. split; [eapply runs_channel; eassumption|]. split; [lia|]. split; [|reflexivity].
      rewrite P. symmetry. apply Permutation_middle.
  Qed.

  Lemma runs_split_channel d s q c ts (p1 p2 : list out) : forall k to,
    runs d s q (p1 ++ (ToChannel c, ts) :: p2) k to ->
    exists k' to' kc tc, runs d s q (p1 ++ p2) k' to' /\ run d s c ts kc tc
      /\ rank rk q < rank rk (queue_of fab c ts)
      /\ rank rk (queue_of fab c ts) <= bound rk
      /\ k = 1 + kc + k' /\ Permutation to (tc ++ to').
  Proof.
    induction p1 as [|o p1 IH]; cbn [app]; intros k to H; inversion H; subst.
    - do 4 eexists. repeat split; eauto.
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & kc & tc & R & C & L & B & -> & P) end.
      exists (1 + k1), to1, kc, tc. repeat split; auto; [apply runs_lost, R|lia].
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & kc & tc & R & C & L & B & -> & P) end.
      exists (1 + k1), (h :: to1), kc, tc. repeat split; auto; [apply runs_host, R|lia|].
      rewrite P. apply Permutation_middle.
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & kc & tc & R & C & L & B & -> & P) end.
      do 4 eexists. split; [eapply runs_channel; eassumption|].
      repeat split; eauto; [lia|].
      rewrite P, !app_assoc. apply Permutation_app_tail, Permutation_app_comm.
  Qed.
End Outcomes.

(** * The search *)

Section Search.
  Variables (fab : fabric) (rk : ranking) (max_tables : nat) (dc : class) (sc : pattern).

  Definition memo_sound (m : memo) : Prop :=
    forall c ts f, recall m c ts = Some f ->
    forall d s, in_class dc d = true -> fits sc s = true -> run fab rk d s c ts (fst f) (snd f).

  Lemma memo_sound_empty : memo_sound (Memo.empty _).
  Proof. intros c ts f H. unfold recall in H. cbn in H. discriminate. Qed.

  Lemma stack_eqb_eq a : forall b, stack_eqb a b = true -> a = b.
  Proof.
    induction a as [|(x, y) a IH]; intros [|(x', y') b]; cbn; try easy.
    rewrite !andb_true_iff. unfold tag_eqb. cbn. rewrite andb_true_iff, !N.eqb_eq.
    intros ((-> & ->) & H). now rewrite (IH _ H).
  Qed.

  Lemma recall_remember m c ts f c' ts' f' :
    recall (remember m c ts f) c' ts' = Some f' ->
    (c' = c /\ ts' = ts /\ f' = f) \/ recall m c' ts' = Some f'.
  Proof.
    unfold recall, remember. destruct (N.eq_dec c c') as [<-|D].
    - rewrite (Memo.find_1 (Memo.add_1 m _ eq_refl)). cbn.
      destruct (stack_eqb ts' ts) eqn:E.
      + intros H. injection H as <-. left. apply stack_eqb_eq in E. easy.
      + destruct (Memo.find c m); [now right|cbn; discriminate].
    - set (v := (ts, f) :: _).
      destruct (Memo.find c' (Memo.add c v m)) eqn:E; [|discriminate].
      apply Memo.find_2 in E. apply Memo.add_3 in E; [|easy].
      rewrite (Memo.find_1 E). now right.
  Qed.

  Definition sound (go : memo -> N -> stack -> option (memo * outcome)) : Prop :=
    forall m c ts m' f, memo_sound m -> go m c ts = Some (m', f) ->
    memo_sound m' /\ forall d s, in_class dc d = true -> fits sc s = true ->
                           run fab rk d s c ts (fst f) (snd f).

  Lemma follow_all_sound go from : sound go -> forall outs m m' f, memo_sound m ->
    follow_all fab rk go from m outs = Some (m', f) ->
    memo_sound m' /\ forall d s, in_class dc d = true -> fits sc s = true ->
                           runs fab rk d s from outs (fst f) (snd f).
  Proof.
    intros S. induction outs as [|([h|c|], ts) outs IH]; intros m m' f G; cbn [follow_all].
    - intros H; injection H as <- <-. split; [easy|]. intros. constructor.
    - destruct ts; [|discriminate].
      destruct (follow_all fab rk go from m outs) as [(m1, (k, to))|] eqn:E; [|discriminate].
      intros H; injection H as <- <-. destruct (IH _ _ _ G E) as (G' & R). split; [easy|].
      intros. constructor. now apply R.
    - cbv zeta. destruct ((rank rk from <? _) && _) eqn:K; [|discriminate].
      apply andb_true_iff in K as (K1 & K2). apply N.ltb_lt in K1. apply N.leb_le in K2.
      destruct (go m c ts) as [(m1, (k, to))|] eqn:E; [|discriminate].
      destruct (follow_all fab rk go from m1 outs) as [(m2, (k', to'))|] eqn:F; [|discriminate].
      intros H; injection H as <- <-.
      destruct (S _ _ _ _ _ G E) as (G1 & R1). destruct (IH _ _ _ G1 F) as (G2 & R2).
      split; [easy|]. intros d s Hd Hs. cbn [fst snd].
      apply runs_channel; [easy|easy|apply (R1 d s Hd Hs)|apply (R2 d s Hd Hs)].
    - destruct (follow_all fab rk go from m outs) as [(m1, (k, to))|] eqn:E; [|discriminate].
      intros H; injection H as <- <-. destruct (IH _ _ _ G E) as (G' & R). split; [easy|].
      intros. constructor. now apply R.
  Qed.

  Lemma follow_sound fuel : sound (follow fab rk max_tables fuel dc sc).
  Proof.
    induction fuel as [|fuel IH]; intros m c ts m' f G; cbn [follow];
      destruct (recall m c ts) as [f0|] eqn:R.
    1, 3: intros H; injection H as <- <-; split; [easy|now apply (G c ts)].
    1: discriminate.
    destruct (arrive fab max_tables c dc sc ts) as [outs|] eqn:A; [|discriminate].
    destruct (follow_all fab rk (follow fab rk max_tables fuel dc sc) (queue_of fab c ts) m outs)
      as [(m1, f1)|] eqn:F; [|discriminate].
    intros H; injection H as <- <-.
    destruct (follow_all_sound _ _ IH _ _ _ _ G F) as (G1 & R1).
    assert (T : forall d s, in_class dc d = true -> fits sc s = true ->
                run fab rk d s c ts (fst f1) (snd f1)).
    { intros d s Hd Hs. destruct (arrive_sound dc sc d s Hd Hs _ _ _ _ _ A) as (B & U).
      econstructor; eauto. }
    split; [|exact T].
    intros c' ts' f' Q. apply recall_remember in Q as [(-> & -> & ->)|Q]; [exact T|now apply (G1 c' ts')].
  Qed.
End Search.

(** * What hosts send *)

Lemma list_eqb_eq a : forall b, list_eqb a b = true -> a = b.
Proof.
  induction a as [|x a IH]; intros [|y b]; cbn; try easy.
  rewrite andb_true_iff, N.eqb_eq. intros (-> & H). now rewrite (IH _ H).
Qed.

Lemma sorted_permutation a b : list_eqb (NSort.sort a) (NSort.sort b) = true -> Permutation a b.
Proof.
  intros H. apply list_eqb_eq in H.
  rewrite (NSort.Permuted_sort a), H. symmetry. apply NSort.Permuted_sort.
Qed.

Section Sent.
  Variables (fab : fabric) (rk : ranking) (max_tables fuel : nat).

  (** What is known of a frame that a host may send. *)
  Definition followed (h d : N) : Prop :=
    exists outs k to,
      arrives fab (from_host fab h) d (mac fab h) [] outs
      /\ (forall outs', arrives fab (from_host fab h) d (mac fab h) [] outs' -> outs' = outs)
      /\ runs fab rk d (mac fab h) (queue_of fab (from_host fab h) []) outs k to
      /\ forall w, wanted fab h d = Some w -> Permutation w to.

  Lemma receives_sound d h to x :
    x <= exact -> in_class d x = true ->
    let of_class := filter (fun h => in_class d (mac fab h)) (hosts fab) in
    match of_class with
    | [] => true
    | [_] => (snd (fst d) =? exact) && negb (in_class d (broadcast fab))
    | _ => false
    end = true ->
    receives fab d of_class h to = true ->
    forall w, wanted fab h x = Some w -> Permutation w to.
  Proof.
    cbv zeta. intros X F C R w W. unfold receives in R. unfold wanted in W.
    destruct (x =? broadcast fab) eqn:B.
    - apply N.eqb_eq in B. subst x. rewrite F in R. injection W as <-.
      now apply sorted_permutation.
    - destruct (mac fab h =? x) eqn:M; [discriminate|]. apply N.eqb_neq in M.
      destruct (filter (is_host fab x) (hosts fab)) as [|r l] eqn:L; [discriminate|].
      injection W as <-.
      assert (A : forall y, In y (r :: l) -> mac fab y = x
                    /\ In y (filter (fun h => in_class d (mac fab h)) (hosts fab))).
      { intros y Y. rewrite <- L in Y. apply filter_In in Y as (Y & Z).
        unfold is_host in Z. apply N.eqb_eq in Z. split; [easy|].
        apply filter_In. split; [easy|]. now rewrite Z. }
      destruct (filter (fun h => in_class d (mac fab h)) (hosts fab)) as [|a [|b more]] eqn:O;
        [|apply andb_true_iff in C as (E & N); apply negb_true_iff in N; rewrite N in R|discriminate].
      + destruct (A r (or_introl eq_refl)) as (_ & []).
      + destruct (A r (or_introl eq_refl)) as (Mr & [->|[]]).
        assert (L1 : l = []).
        { destruct l as [|y l]; [easy|]. exfalso.
          assert (Len : (length (filter (is_host fab x) (hosts fab))
                         <= length (filter (fun h => in_class d (mac fab h)) (hosts fab)))%nat).
          { clear - F. induction (hosts fab) as [|z zs IH]; cbn; [lia|].
            unfold is_host at 1. destruct (mac fab z =? x) eqn:Q.
            - apply N.eqb_eq in Q. rewrite Q, F. cbn. lia.
            - destruct (in_class d (mac fab z)); cbn; lia. }
          rewrite L, O in Len. cbn in Len. lia. }
        subst l. apply orb_true_iff in R as [R|R].
        * apply N.eqb_eq in R. congruence.
        * destruct to as [|y [|z to]]; try discriminate. apply N.eqb_eq in R. now subst.
  Qed.

  Lemma from_hosts_sound any d of_class x :
    in_class d x = true ->
    (forall h to, receives fab d of_class h to = true ->
                  forall w, wanted fab h x = Some w -> Permutation w to) ->
    forall senders m, (any = true -> memo_sound fab rk d (0, 0) m) ->
    from_hosts fab rk max_tables fuel any d of_class m senders = true ->
    forall h, In h senders -> followed h x.
  Proof.
    intros F W. induction senders as [|h senders IH]; [easy|].
    intros m G. cbn [from_hosts]. cbv zeta.
    destruct (arrive fab max_tables (from_host fab h) d (mac fab h, exact) []) as [outs|] eqn:A;
      [|discriminate].
    destruct (follow_all _ _ _ _ _ outs) as [(m1, (k, to))|] eqn:E; [|discriminate].
    rewrite andb_true_iff. intros (R & T).
    assert (S : memo_sound fab rk d (if any then (0, 0) else (mac fab h, exact)) m1
      /\ forall d' s, in_class d d' = true ->
         fits (if any then (0, 0) else (mac fab h, exact)) s = true ->
         runs fab rk d' s (queue_of fab (from_host fab h) []) outs k to).
    { eapply follow_all_sound in E; [exact E|apply follow_sound|].
      destruct any; [now apply G|apply memo_sound_empty]. }
    destruct S as (G1 & R1).
    destruct (arrive_sound d (mac fab h, exact) x (mac fab h) F (fits_self _ _) _ _ _ _ _ A) as (B & U).
    intros h' [<-|I].
    - exists outs, k, to. repeat split; auto.
      + apply R1; [easy|]. destruct any; [apply fits_any|apply fits_self].
      + now apply W.
    - apply (IH m1); auto. intros ->. exact G1.
  Qed.

  Lemma check_class_sound d : check_class fab rk max_tables fuel d = true ->
    forall x h, x <= exact -> in_class d x = true -> In h (hosts fab) -> followed h x.
  Proof.
    unfold check_class. cbv zeta. rewrite andb_true_iff. intros (C & S) x h X F I.
    assert (W := fun h to => receives_sound d h to x X F C).
    apply orb_true_iff in S as [S|S].
    - eapply (from_hosts_sound true); eauto. intros _. apply memo_sound_empty.
    - eapply (from_hosts_sound false); eauto. discriminate.
  Qed.
End Sent.

(** * The network *)

Section Network.
  Variables (fab : fabric) (rk : ranking) (room : N -> nat) (addresses : N -> Prop).
  Hypothesis (K : forall h d, In h (hosts fab) -> addresses d -> followed fab rk h d).

  Definition outcome_of (i : item) (f : outcome) : Prop :=
    runs fab rk (i_dst i) (i_src i) (at_queue i) (pending i) (fst f) (snd f).

  Definition receipts (i : item) (f : outcome) : list receipt :=
    map (fun h => (h, (i_dst i, i_src i))) (snd f).

  Definition outstanding (l : list item) (outcomes : list outcome) : list receipt :=
    concat (map (fun p => receipts (fst p) (snd p)) (combine l outcomes)).

  Fixpoint total (outcomes : list outcome) : N :=
    match outcomes with [] => 0 | f :: more => fst f + total more end.

  Definition promised (st : list receipt) (rec : list (list N)) : list receipt :=
    concat (map (fun p => map (fun h => (h, snd (fst p))) (snd p)) (combine st rec)).

  Arguments outstanding : simpl never.
  Arguments promised : simpl never.
  Arguments receipts : simpl never.

  Definition invariant (s : state) (n : N) : Prop :=
    exists outcomes rec, Forall2 outcome_of (items s) outcomes /\ total outcomes = n
      /\ Forall2 (fun r l => forall w, wanted fab (fst r) (fst (snd r)) = Some w -> Permutation w l)
                 (sent s) rec
      /\ Permutation (log s ++ outstanding (items s) outcomes) (promised (sent s) rec).

  Lemma total_app a b : total (a ++ b) = total a + total b.
  Proof. induction a as [|x a IH]; cbn; [easy|]. rewrite IH. lia. Qed.

  Lemma combine_app A B (l1 : list A) : forall (l1' : list B) l2 l2',
    length l1 = length l1' -> combine (l1 ++ l2) (l1' ++ l2') = combine l1 l1' ++ combine l2 l2'.
  Proof. induction l1; intros [|]; cbn; intros; try easy. f_equal. apply IHl1. congruence. Qed.

  Lemma same_length A B (P : A -> B -> Prop) l1 l2 : Forall2 P l1 l2 -> length l1 = length l2.
  Proof. induction 1; cbn; congruence. Qed.

  Lemma outstanding_app l1 f1 l2 f2 : Forall2 outcome_of l1 f1 -> outstanding (l1 ++ l2) (f1 ++ f2) = outstanding l1 f1 ++ outstanding l2 f2.
  Proof.
    intros H. unfold outstanding. rewrite combine_app; [|now apply same_length in H].
    now rewrite map_app, concat_app.
  Qed.

  Lemma outstanding_cons i l f fs : outstanding (i :: l) (f :: fs) = receipts i f ++ outstanding l fs.
  Proof. reflexivity. Qed.

  Lemma Forall2_middle (l1 : list item) i l2 outcomes : Forall2 outcome_of (l1 ++ i :: l2) outcomes ->
    exists f1 f f2, outcomes = f1 ++ f :: f2 /\ Forall2 outcome_of l1 f1 /\ outcome_of i f
      /\ Forall2 outcome_of l2 f2.
  Proof.
    intros H. apply Forall2_app_inv_l in H as (f1 & f2 & F1 & F2 & ->).
    inversion F2; subst. eauto 8.
  Qed.

  Lemma inject_keeps s s' n : invariant s n -> inject fab addresses s s' ->
    exists n', invariant s' n'.
  Proof.
    intros (outcomes & rec & F & T & R & P) I.
    destruct I as [l lg st h d outs Host Address Arrives]; subst; cbn in *.
    destruct (K h d Host Address) as (outs' & k & to & A & U & Q & W).
    apply U in Arrives. subst outs'.
    exists (total outcomes + k), (outcomes ++ [(k, to)]), (to :: rec). cbn. repeat split.
    - apply Forall2_app; [easy|]. constructor; [|constructor]. exact Q.
    - rewrite total_app. cbn. lia.
    - constructor; [|easy]. cbn. exact W.
    - rewrite outstanding_app by easy. unfold promised. cbn [combine map concat].
      fold (promised st rec). rewrite outstanding_cons. unfold outstanding at 2. cbn [combine map concat].
      rewrite app_nil_r. unfold receipts at 1. cbn [i_dst i_src snd fst].
      rewrite app_assoc. rewrite Permutation_app_comm. now apply Permutation_app_head.
  Qed.

  Lemma move_keeps s s' n : invariant s n -> move fab room any_item s s' ->
    exists n', invariant s' n' /\ n' < n.
  Proof.
    intros (outcomes & rec & F & T & R & P) M.
    destruct M as [l1 i l2 lg st _ Pending|l1 i l2 lg st p1 p2 ts _ Pending
                  |l1 i l2 lg st p1 p2 ts h _ Pending
                  |l1 i l2 lg st p1 p2 ts c outs _ Pending _ Arrives]; subst; cbn in *;
      apply Forall2_middle in F as (f1 & (k, to) & f2 & -> & F1 & Fi & F2);
      unfold outcome_of in Fi; cbn in Fi; rewrite total_app; cbn [total fst];
      rewrite outstanding_app in P by easy; rewrite outstanding_cons in P.
    - rewrite Pending in Fi. apply runs_none in Fi as (-> & ->).
      exists (total f1 + total f2). split; [|lia].
      exists (f1 ++ f2), rec. cbn. repeat split; auto.
      + now apply Forall2_app.
      + now rewrite total_app.
      + rewrite outstanding_app by easy. exact P.
    - rewrite Pending in Fi. apply runs_split_lost in Fi as (k' & Fi & ->).
      exists (total f1 + (k' + total f2)). split; [|lia].
      exists (f1 ++ (k', to) :: f2), rec. cbn. repeat split; auto.
      + apply Forall2_app; [easy|]. now constructor.
      + now rewrite total_app.
      + rewrite outstanding_app by easy. exact P.
    - rewrite Pending in Fi. apply runs_split_host in Fi as (k' & to' & Fi & -> & Q & ->).
      exists (total f1 + (k' + total f2)). split; [|lia].
      exists (f1 ++ (k', to') :: f2), rec. cbn. repeat split; auto.
      + apply Forall2_app; [easy|]. now constructor.
      + now rewrite total_app.
      + rewrite outstanding_app by easy. rewrite outstanding_cons. rewrite <- P.
        unfold receipts. cbn [i_dst i_src snd fst].
        rewrite (Permutation_map (fun h0 => (h0, (i_dst i, i_src i))) Q). cbn [map app].
        rewrite app_assoc, (app_assoc lg). apply Permutation_middle.
    - rewrite Pending in Fi.
      apply runs_split_channel in Fi as (k' & to' & kc & tc & Fi & C & _ & _ & -> & Q).
      destruct C as [c ts kc tc outs' _ Unique Rest].
      apply Unique in Arrives. subst outs'.
      exists (total f1 + (k' + (total f2 + kc))). split; [|lia].
      exists (f1 ++ (k', to') :: f2 ++ [(kc, tc)]), rec. cbn. repeat split; auto.
      + apply Forall2_app; [easy|]. constructor; [easy|]. apply Forall2_app; [easy|].
        constructor; [|constructor]. exact Rest.
      + rewrite total_app. cbn. rewrite total_app. cbn. lia.
      + rewrite outstanding_app by easy. rewrite outstanding_cons. rewrite outstanding_app by easy.
        rewrite <- P. unfold receipts. cbn [i_dst i_src snd fst].
        rewrite (Permutation_map (fun h0 => (h0, (i_dst i, i_src i))) Q).
        rewrite map_app. unfold outstanding at 3. cbn [combine map concat]. rewrite app_nil_r.
        unfold receipts. cbn [i_dst i_src snd fst].
        apply Permutation_app_head, Permutation_app_head.
        rewrite app_assoc, Permutation_app_comm, app_assoc. reflexivity.
  Qed.

  Lemma reachable_invariant s : reachable fab room addresses s -> exists n, invariant s n.
  Proof.
    induction 1 as [|s s' _ (n & IH) I|s s' _ (n & IH) M].
    - exists 0, [], []. cbn. repeat split; constructor.
    - now apply inject_keeps with (1 := IH).
    - destruct (move_keeps _ _ _ IH M) as (n' & H & _). now exists n'.
  Qed.

  Lemma waits_upwards s n i c ts : invariant s n -> In i (items s) ->
    In (ToChannel c, ts) (pending i) ->
    rank rk (at_queue i) < rank rk (queue_of fab c ts) <= bound rk.
  Proof.
    intros (outcomes & rec & F & _) I J.
    apply in_split in I as (l1 & l2 & E). rewrite E in F.
    apply Forall2_middle in F as (f1 & (k, to) & f2 & -> & F1 & Fi & F2).
    unfold outcome_of in Fi. apply in_split in J as (p1 & p2 & E2). rewrite E2 in Fi.
    apply runs_split_channel in Fi as (_ & _ & _ & _ & _ & _ & L & B & _). easy.
  Qed.

  Lemma no_deadlock s stuck : reachable fab room addresses s -> ~ deadlock fab s stuck.
  Proof.
    intros R ((q & Q) & D). apply reachable_invariant in R as (n & V).
    enough (X : forall k q, stuck q -> (N.to_nat (bound rk - rank rk q) < k)%nat -> False).
    { exact (X _ q Q (PeanoNat.Nat.lt_succ_diag_r _)). }
    induction k as [|k IH]; intros q' Q' L; [lia|].
    destruct (D q' Q') as (i & c & ts & I & <- & J & S).
    destruct (waits_upwards _ _ _ _ _ V I J) as (W & B).
    apply (IH _ S). lia.
  Qed.

  Lemma first_of q l : (exists i, In i l /\ at_queue i = q) ->
    exists l1 i l2, l = l1 ++ i :: l2 /\ at_queue i = q /\ forall j, In j l1 -> at_queue j <> q.
  Proof.
    induction l as [|x l IH]; intros (i & I & E); [easy|].
    destruct (N.eq_dec (at_queue x) q) as [D|D].
    - exists [], x, l. repeat split; auto.
    - destruct I as [->|I]; [easy|]. destruct IH as (l1 & i' & l2 & -> & E' & N); [eauto|].
      exists (x :: l1), i', l2. repeat split; auto. intros j [<-|J]; auto.
  Qed.

  Lemma progress s : (forall q, (0 < room q)%nat) -> reachable fab room addresses s ->
    items s <> [] -> exists s', move fab room head_only s s'.
  Proof.
    intros Room R NE. apply reachable_invariant in R as (n & V).
    assert (S : exists q i, In i (items s) /\ at_queue i = q).
    { destruct (items s) as [|i l]; [easy|]. exists (at_queue i), i. split; [now left|easy]. }
    destruct S as (q & S).
    enough (X : forall k q, (exists i, In i (items s) /\ at_queue i = q) ->
              (N.to_nat (bound rk - rank rk q) < k)%nat -> exists s', move fab room head_only s s').
    { exact (X _ q S (PeanoNat.Nat.lt_succ_diag_r _)). }
    clear q S. induction k as [|k IH]; intros q S L; [lia|].
    apply first_of in S as (l1 & i & l2 & E & Q & N).
    assert (H : head_only l1 i) by (intros j J; rewrite Q; now apply N).
    destruct s as [its lg st]. cbn in *. subst its.
    destruct (pending i) as [|([h|c|], ts) p] eqn:P.
    - eexists. eapply move_free; eauto.
    - eexists. eapply move_deliver with (p1 := []); eauto.
    - assert (I : In i (l1 ++ i :: l2)) by (apply in_or_app; right; now left).
      assert (J : In (ToChannel c, ts) (pending i)) by (rewrite P; now left).
      destruct (waits_upwards _ _ _ _ _ V I J) as (W & B).
      destruct (Compare_dec.lt_dec (length (waiting_in (queue_of fab c ts) (l1 ++ i :: l2)))
                                   (room (queue_of fab c ts))) as [D|D].
      + destruct V as (outcomes & rec & F & _). cbn in F.
        apply Forall2_middle in F as (f1 & (k0, to) & f2 & -> & F1 & Fi & F2).
        unfold outcome_of in Fi. rewrite P in Fi.
        apply (runs_split_channel fab rk _ _ _ _ _ []) in Fi as (_ & _ & kc & tc & _ & C & _).
        inversion C; subst. eexists. eapply move_pass with (p1 := []); eauto.
      + rewrite Q in W. apply (IH (queue_of fab c ts)); [|lia].
        destruct (waiting_in (queue_of fab c ts) (l1 ++ i :: l2)) as [|j w] eqn:X.
        * specialize (Room (queue_of fab c ts)). cbn in D. lia.
        * exists j. assert (Y : In j (waiting_in (queue_of fab c ts) (l1 ++ i :: l2)))
            by (rewrite X; now left).
          apply filter_In in Y as (Y & Z). split; [easy|]. now apply N.eqb_eq.
    - eexists. eapply move_lost with (p1 := []); eauto.
  Qed.

  Lemma sending l lg st h d : In h (hosts fab) -> addresses d ->
    exists s', inject fab addresses (State l lg st) s' /\ sent s' = (h, (d, mac fab h)) :: st.
  Proof.
    intros I D. destruct (K h d I D) as (outs & k & to & A & _). eexists. split.
    - econstructor; eassumption.
    - reflexivity.
  Qed.

  Lemma settled s : reachable fab room addresses s -> exists n, settles_within fab room s n.
  Proof.
    intros R. apply reachable_invariant in R as (n & V). exists (N.to_nat n).
    intros k path E M.
    enough (X : forall j, (j <= k)%nat -> exists n', invariant (path j) n' /\ (N.to_nat n' + j <= N.to_nat n)%nat).
    { destruct (X k) as (n' & _ & Y); lia. }
    induction j as [|j IH]; intros J.
    - rewrite E. exists n. split; [easy|lia].
    - destruct IH as (n' & V' & Y); [lia|].
      destruct (move_keeps _ _ _ V' (M j ltac:(lia))) as (n'' & V'' & L). exists n''. split; [easy|lia].
  Qed.

  Lemma delivered s : reachable fab room addresses s -> items s = [] ->
    exists receivers : list (list N),
      Forall2 (fun r l => forall w, wanted fab (fst r) (fst (snd r)) = Some w -> Permutation w l)
              (sent s) receivers
      /\ Permutation (log s) (promised (sent s) receivers).
  Proof.
    intros R E. apply reachable_invariant in R as (n & outcomes & rec & F & _ & W & P).
    rewrite E in *. inversion F; subst. cbn in P. rewrite app_nil_r in P. eauto.
  Qed.
End Network.

Lemma followed_safe fab rk (addresses : N -> Prop) :
  (forall h d, In h (hosts fab) -> addresses d -> followed fab rk h d) -> safe fab addresses.
Proof.
  intros K. split; intros.
  - now apply sending with (rk := rk).
  - now apply no_deadlock with (rk := rk) (room := room) (addresses := addresses).
  - now apply progress with (rk := rk) (addresses := addresses).
  - now apply settled with (rk := rk) (addresses := addresses).
  - now apply delivered with (rk := rk) (room := room) (addresses := addresses).
Qed.

(** * The theorems *)

Definition in_classes (classes : list class) (d : N) : Prop :=
  d < 2 ^ 48 /\ exists c, In c classes /\ in_class c d = true.

Lemma small d : d < 2 ^ 48 -> d <= exact.
Proof. intros D. change exact with (N.pred (2 ^ 48)). now apply N.lt_le_pred. Qed.

(** Of frames to the addresses of some classes. *)
Theorem check_sound fab rk max_tables fuel classes :
  check fab rk max_tables fuel classes = true -> safe fab (in_classes classes).
Proof.
  intros C. apply followed_safe with rk. intros h d I (D & c & P & F).
  unfold check in C. rewrite forallb_forall in C.
  eapply check_class_sound; eauto. now apply small.
Qed.

(** A number agrees with a cube in some bits. *)
Definition agrees (x decided : N) (p : pattern) : Prop :=
  forall i, N.testbit decided i = true -> N.testbit (snd p) i = true ->
            N.testbit x i = N.testbit (fst p) i.

Lemma divided_sound bits x fuel : forall decided cubes,
  divided fuel bits decided cubes = true ->
  (forall p, In p cubes -> agrees x decided p) -> exists p, In p cubes /\ fits p x = true.
Proof.
  induction fuel as [|fuel IH]; intros decided cubes Divided Agree;
    cbn [divided] in Divided; destruct cubes as [|p0 rest]; try discriminate;
    set (cubes := p0 :: rest) in *; apply orb_true_iff in Divided as [Whole|Divided];
    try discriminate.
  1, 2: apply existsb_exists in Whole as (p & In_cubes & Whole); exists p; split; [easy|];
    apply fits_spec; intros i Mask; apply (Agree p In_cubes); [|easy];
    apply N.eqb_eq, (f_equal (fun n => N.testbit n i)) in Whole;
    rewrite N.ldiff_spec, Mask, N.bits_0 in Whole; now apply negb_false_iff in Whole.
  cbv zeta in Divided. set (bit := dividing_bit bits decided cubes) in *.
  apply andb_true_iff in Divided as (Zero & One).
  assert (Side : forall one, N.testbit x bit = one -> forall p,
    In p (filter (fun p => negb (N.testbit (snd p) bit) || Bool.eqb (N.testbit (fst p) bit) one)
                 cubes) ->
    In p cubes /\ agrees x (N.setbit decided bit) p).
  { intros one Bit p Chosen. apply filter_In in Chosen as (In_cubes & Chosen). split; [easy|].
    intros i Decided Mask. rewrite N.setbit_eqb in Decided. destruct (bit =? i) eqn:Same.
    - apply N.eqb_eq in Same. subst i. rewrite Mask in Chosen. cbn in Chosen.
      apply Bool.eqb_prop in Chosen. congruence.
    - now apply (Agree p In_cubes). }
  destruct (N.testbit x bit) eqn:Bit.
  - destruct (IH _ _ One) as (p & Chosen & Fits); [intros p I; now apply (Side true)|].
    exists p. split; [now apply (Side true)|easy].
  - destruct (IH _ _ Zero) as (p & Chosen & Fits); [intros p I; now apply (Side false)|].
    exists p. split; [now apply (Side false)|easy].
Qed.

Lemma cover_sound bits : forall cubes x, cover bits cubes = true ->
  exists p, In p cubes /\
    forall i, i < N.of_nat bits -> N.testbit (snd p) i = true -> N.testbit x i = N.testbit (fst p) i.
Proof.
  intros cubes x Covered. unfold cover in Covered.
  destruct (divided_sound _ x _ _ _ Covered) as (p & In_cubes & Fits).
  - intros p _ i Decided. now rewrite N.bits_0 in Decided.
  - exists p. split; [easy|]. intros i _. rewrite fits_spec in Fits. apply Fits.
Qed.

Lemma in_some_class d : forall classes, exceptions_follow classes = true ->
  forall c, In c classes -> fits (fst c) d = true -> exists c', In c' classes /\ in_class c' d = true.
Proof.
  induction classes as [|c0 more IH]; [easy|]. cbn [exceptions_follow].
  rewrite andb_true_iff. intros (E & L) c I F.
  destruct I as [<-|I].
  - destruct (forallb (fun e => negb (fits e d)) (snd c0)) eqn:G.
    + exists c0. split; [now left|]. unfold in_class. now rewrite F, G.
    + assert (Y : exists e, In e (snd c0) /\ fits e d = true).
      { clear - G. induction (snd c0) as [|e l IH]; [discriminate|]. cbn in G.
        destruct (fits e d) eqn:H.
        - exists e. split; [now left|easy].
        - destruct IH as (e' & J & K); [easy|]. exists e'. split; [now right|easy]. }
      destruct Y as (e & J & K). rewrite forallb_forall in E. specialize (E e J).
      apply existsb_exists in E as (q & Q & X). apply pattern_eqb_eq in X. subst q.
      apply in_map_iff in Q as (c & <- & Q).
      destruct (IH L c Q K) as (c' & A & B). exists c'. split; [now right|easy].
  - destruct (IH L c I F) as (c' & A & B). exists c'. split; [now right|easy].
Qed.

(** Of frames to any address. *)
Theorem check_all_sound fab rk max_tables fuel classes :
  check_all fab rk max_tables fuel classes = true -> safe fab (fun d => d < 2 ^ 48).
Proof.
  unfold check_all. rewrite !andb_true_iff. intros (((M & E) & V) & C).
  apply followed_safe with rk. intros h d I D.
  assert (X : exists c, In c classes /\ in_class c d = true).
  { destruct (cover_sound 48 _ d V) as (p & P & Q).
    apply in_map_iff in P as (c & <- & P).
    apply in_some_class with c; auto.
    apply fits_spec. intros i Hi. apply Q; [|easy].
    rewrite forallb_forall in M. specialize (M c P). apply N.leb_le in M.
    destruct (N.lt_ge_cases i (N.of_nat 48)) as [L|L]; [easy|].
    rewrite <- (N.mod_small (snd (fst c)) (2 ^ 48)) in Hi.
    - rewrite N.mod_pow2_bits_high in Hi; [discriminate|easy].
    - apply N.le_lt_trans with (1 := M). reflexivity. }
  destruct X as (c & P & F).
  unfold check in C. rewrite forallb_forall in C.
  eapply check_class_sound; eauto. now apply small.
Qed.

Print Assumptions check_sound.
Print Assumptions check_all_sound.
