(** The proof: what the checker accepts is safe. *)
From Coq Require Import NArith List Bool Permutation Lia Wf_nat.
From Knotless Require Import Spec Checker.
Import ListNotations.
Open Scope N_scope.
Open Scope bool_scope.

(** * Maps *)

Lemma halves_equal a b : N.odd a = N.odd b -> N.div2 a = N.div2 b -> a = b.
Proof. intros Odd Half. now rewrite (N.div2_odd a), (N.div2_odd b), Odd, Half. Qed.

Lemma find_one A (key : N) (x : A) key' y : Map.find (Map.One key x) key' = Some y -> key' = key /\ y = x.
Proof.
  cbn. destruct (key' =? key) eqn:Same; [|discriminate]. apply N.eqb_eq in Same.
  intros Found. now injection Found as <-.
Qed.

Lemma find_two A bits : forall a (x : A) b y key z, Map.find (Map.two bits a x b y) key = Some z ->
  key = a /\ z = x \/ key = b /\ z = y.
Proof.
  induction bits as [|bits IH]; intros a x b y key z; cbn [Map.two]; [easy|].
  destruct (a =? 0) eqn:Zero_a; [|destruct (b =? 0) eqn:Zero_b];
    [apply N.eqb_eq in Zero_a; subst a|apply N.eqb_eq in Zero_b; subst b|];
    destruct (N.odd _) eqn:Odd; try destruct (N.odd b) eqn:Odd_b; cbn [Map.find];
    (destruct (key =? 0) eqn:Zero_key;
      [apply N.eqb_eq in Zero_key; subst key; try discriminate;
       intros Found; injection Found as <-; auto|]);
    destruct (N.odd key) eqn:Odd_key; try discriminate; intros Found;
    (apply find_one in Found as (Half & ->) || apply IH in Found as [(Half & ->)|(Half & ->)]);
    apply halves_equal in Half; auto; congruence.
Qed.

Lemma find_added A (t : Map.tree A) : forall key x key' y,
  Map.find (Map.add t key x) key' = Some y -> key' = key /\ y = x \/ Map.find t key' = Some y.
Proof.
  induction t as [|only value|even IH_even value odd IH_odd]; cbn [Map.add]; intros key x key' y.
  - intros Found. left. now apply find_one in Found.
  - destruct (key =? only) eqn:Same; intros Found.
    + left. now apply find_one in Found.
    + apply find_two in Found as [(-> & ->)|Found]; [right|now left]. cbn. now rewrite N.eqb_refl.
  - destruct (key =? 0) eqn:Zero; cbn [Map.find].
    { apply N.eqb_eq in Zero. destruct (key' =? 0) eqn:Zero'; [|now right].
      apply N.eqb_eq in Zero'. intros Found. injection Found as <-. left. now subst. }
    destruct (N.odd key) eqn:Odd; cbn [Map.find];
      (destruct (key' =? 0); [now right|]; destruct (N.odd key') eqn:Odd'; try now right);
      intros Found; [apply IH_odd in Found|apply IH_even in Found];
      destruct Found as [(Half & ->)|Found]; try (now right);
      left; (split; [|reflexivity]); apply halves_equal; congruence.
Qed.

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

(** A number that a pattern fits stands for those that agree with it. *)
Lemma fits_agreeing v m x y : fits (v, m) x = true -> fits (x, m) y = true -> fits (v, m) y = true.
Proof.
  rewrite !fits_spec. cbn [fst snd]. intros One Two i Mask. now rewrite (Two i Mask), (One i Mask).
Qed.

Lemma fits_both v a b x :
  fits (v, N.lor a b) x = true -> fits (v, a) x = true /\ fits (v, b) x = true.
Proof.
  rewrite !fits_spec. cbn [fst snd]. intros Both.
  split; intros i Mask; apply Both; rewrite N.lor_spec, Mask; [easy|apply orb_true_r].
Qed.

(** The halves of a class contain what the class contains. *)
Lemma halves_contain d bit x :
  in_class d x = true -> exists one, in_class (half one d bit) x = true.
Proof.
  unfold in_class, half. destruct d as ((value, mask), exceptions). cbn [fst snd].
  rewrite andb_true_iff. intros (Fits & Excepted). rewrite fits_spec in Fits. cbn [fst snd] in Fits.
  exists (N.testbit x bit). cbn [fst snd]. rewrite Excepted, andb_true_r.
  apply fits_spec. cbn [fst snd]. intros i Mask. rewrite N.setbit_eqb in Mask.
  destruct (bit =? i) eqn:Same.
  - apply N.eqb_eq in Same. subst i.
    destruct (N.testbit x bit); [now rewrite N.setbit_eq|now rewrite N.clearbit_eq].
  - cbn in Mask. rewrite (Fits i Mask).
    destruct (N.testbit x bit); [now rewrite N.setbit_eqb, Same|].
    rewrite N.clearbit_eqb, Same. cbn. now rewrite andb_true_r.
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

Lemma patterns_eqb_eq a : forall b, patterns_eqb a b = true -> a = b.
Proof.
  induction a as [|x a IH]; intros [|y b]; cbn; try easy.
  rewrite andb_true_iff. intros (Same & Rest). now rewrite (pattern_eqb_eq _ _ Same), (IH _ Rest).
Qed.

(** Rules of which it does not matter which one counts. *)
Definition alike (a b : rule) : Prop :=
  r_acts a = r_acts b /\ r_write a = r_write b /\ r_writes a = r_writes b /\ r_goto a = r_goto b.

Lemma does_as_more a b : does_as a b = true -> r_more a = r_more b.
Proof. unfold does_as. rewrite !andb_true_iff. intros ((_ & Same) & _). now apply Bool.eqb_prop. Qed.

Lemma does_as_alike a b : does_as a b = true -> alike a b.
Proof.
  unfold does_as. rewrite !andb_true_iff. intros ((((Acts & Write) & Writes) & _) & Goto).
  split; [now apply actions_eqb_eq|]. split; [now apply pattern_eqb_eq|].
  split; [now apply patterns_eqb_eq|].
  destruct (r_goto a), (r_goto b); try discriminate; [|reflexivity].
  apply PeanoNat.Nat.eqb_eq in Goto. now subst.
Qed.

Lemma collect_sound A B (f : A -> answer (list B)) l : forall all, collect f l = Known all ->
  (forall x, In x l -> exists some, f x = Known some /\ incl some all)
  /\ forall y, In y all -> exists x some, In x l /\ f x = Known some /\ In y some.
Proof.
  induction l as [|x l IH]; cbn [collect]; intros all Collect.
  - injection Collect as <-. easy.
  - destruct (f x) as [a| |] eqn:First; try discriminate.
    destruct (collect f l) as [b| |] eqn:Rest; try discriminate. injection Collect as <-.
    destruct (IH b eq_refl) as (Each & Only). split.
    + intros x' [<-|Member]; [exists a; split; [easy|now apply incl_appl, incl_refl]|].
      destruct (Each x' Member) as (some & Known_some & Incl). exists some. split; [easy|].
      now apply incl_appr.
    + intros y Member. apply in_app_or in Member as [Member|Member].
      * exists x, a. split; [now left|easy].
      * destruct (Only y Member) as (x' & some & In_l & Known_some & In_some).
        exists x', some. split; [now right|easy].
Qed.

(** * Tags *)

Definition source (x : N) : N := N.land x address_bits.

Lemma source_bit x i : N.testbit (source x) i = N.testbit x i && (i <? 48).
Proof.
  unfold source, address_bits. rewrite N.land_spec. f_equal.
  destruct (N.ltb_spec i 48); [now apply N.ones_spec_low|now apply N.ones_spec_high].
Qed.

Lemma source_own a : a <= address_bits -> source a = a.
Proof.
  intros Small. unfold source, address_bits. rewrite N.land_ones. apply N.mod_small.
  apply N.le_lt_trans with (1 := Small). reflexivity.
Qed.

(** The source that a pattern tests. *)
Lemma fits_of_source pt x : snd pt <= address_bits -> fits pt (source x) = fits pt x.
Proof.
  intros Small. assert (Same : forall i, N.testbit (snd pt) i = true ->
    N.testbit (source x) i = N.testbit x i).
  { intros i Mask. rewrite source_bit. destruct (N.ltb_spec i 48) as [|High]; [apply andb_true_r|].
    rewrite <- (source_own _ Small), source_bit in Mask. apply andb_true_iff in Mask as (_ & Low).
    apply N.ltb_lt in Low. lia. }
  destruct (fits pt x) eqn:Fits.
  - rewrite fits_spec in Fits. apply fits_spec. intros i Mask. now rewrite Same, Fits.
  - destruct (fits pt (source x)) eqn:Fits'; [|reflexivity]. rewrite fits_spec in Fits'.
    rewrite <- Fits. symmetry. apply fits_spec. intros i Mask. now rewrite <- Same, Fits'.
Qed.

Lemma fits_source_yes pt c x : fits_source pt c = Yes -> fits c x = true -> fits pt (source x) = true.
Proof.
  unfold fits_source. destruct (snd pt <=? address_bits) eqn:Small; [|discriminate].
  apply N.leb_le in Small. rewrite fits_of_source by easy. apply fits_cube_yes.
Qed.

Lemma fits_source_no pt c x : fits_source pt c = No -> fits c x = true -> fits pt (source x) = false.
Proof.
  unfold fits_source. destruct (snd pt <=? address_bits) eqn:Small; [|discriminate].
  apply N.leb_le in Small. rewrite fits_of_source by easy. apply fits_cube_no.
Qed.

Lemma fits_vlan c x : fits c x = true -> fits (vlan_of (fst c), vlan_of (snd c)) (vlan_of x) = true.
Proof.
  rewrite !fits_spec. cbn [fst snd]. unfold vlan_of. intros Fits i.
  rewrite !N.shiftr_spec by apply N.le_0_l. apply Fits.
Qed.

Section Real.
  (** What a host has chosen, the priority of its first tag, and the tags below. *)
  Variables (x p0 : N) (rest : stack).

  Fixpoint real (ts : view) : stack :=
    match ts with
    | Bottom => []
    | More => rest
    | Tag v p below =>
        (match v with Some v => v | None => vlan_of x end,
         match p with Some p => p | None => p0 end) :: real below
    end.
  Definition real_copy (c : copy_seen) : copy := (fst c, real (snd c)).
  Definition real_effects (e : effects_seen) : effects :=
    option_map (fun e => (real (fst e), map real_copy (snd e))) e.

  Lemma vids_fit ts c : fits c x = true -> fits (vids ts c) (vid (real ts)) = true.
  Proof.
    intros Fits. destruct ts as [| |[v|] p below]; cbn [vids real vid];
      try apply fits_self; [apply fits_any|]. now apply fits_vlan.
  Qed.

  Lemma pcps_fit ts : fits (pcps ts) (pcp (real ts)) = true.
  Proof. destruct ts as [| |v [p|] below]; try apply fits_self; apply fits_any. Qed.

  Lemma do_bucket_sound port acts : forall ts out ts' out',
    do_bucket port acts ts out = Some (ts', out') ->
    bucket port acts (real ts) (map real_copy out) = Some (real ts', map real_copy out').
  Proof.
    induction acts as [|action acts IH]; intros ts out ts' out'; cbn [do_bucket].
    { intros Result. now injection Result as <- <-. }
    destruct action; try (destruct ts as [| |v0 p1 below]); try discriminate;
      intros Result; apply IH in Result; cbn [bucket real] in *; try exact Result.
    1, 2, 3: rewrite <- Result; destruct (port0 =? port); [reflexivity|]; now rewrite map_app.
    all: now rewrite <- Result, map_app.
  Qed.

  Lemma do_buckets_sound port all : forall ts out out',
    do_buckets port all ts out = Some out' ->
    buckets port all (real ts) (map real_copy out) = Some (map real_copy out').
  Proof.
    induction all as [|one all IH]; intros ts out out'; cbn [do_buckets].
    { intros Result. now injection Result as <-. }
    destruct (do_bucket port one ts out) as [(ts1, out1)|] eqn:One; [|discriminate].
    intros Result. cbn [buckets]. rewrite (do_bucket_sound _ _ _ _ _ _ One). now apply IH.
  Qed.

  (** The effects are those that are seen, if all of them are known. *)
  Lemma perform_sound sw port acts : forall ts out, ~ In None (perform sw port acts ts out) ->
    apply sw port acts (real ts) (map real_copy out)
    = map real_effects (perform sw port acts ts out).
  Proof.
    induction acts as [|action acts IH]; intros ts out; [reflexivity|].
    assert (One : match action with Group _ => False | _ => True end ->
      forall acts', acts' = acts ->
      ~ In None (match do_bucket port [action] ts out with
                 | None => [None]
                 | Some (ts, out) => perform sw port acts ts out
                 end) ->
      match bucket port [action] (real ts) (map real_copy out) with
      | None => [None]
      | Some (ts, out) => apply sw port acts ts out
      end = map real_effects (match do_bucket port [action] ts out with
                              | None => [None]
                              | Some (ts, out) => perform sw port acts ts out
                              end)).
    { intros _ _ _ Known.
      destruct (do_bucket port [action] ts out) as [(ts1, out1)|] eqn:Result.
      - apply do_bucket_sound in Result. rewrite Result. now apply IH.
      - exfalso. apply Known. now left. }
    destruct action; try exact (One I acts eq_refl). clear One.
    cbn [perform apply]. destruct (group_of g (groups sw)) as [[content|content|content]|].
    - destruct (do_buckets port content ts out) as [out1|] eqn:Result; intros Known.
      + apply do_buckets_sound in Result. rewrite Result. now apply IH.
      + exfalso. apply Known. now left.
    - destruct content as [|one0 others]; [apply IH|]. set (content := one0 :: others). clearbody content.
      induction content as [|one content IH_content]; [reflexivity|]. cbn [flat_map]. intros Known.
      rewrite map_app, <- IH_content; [|intros Member; apply Known, in_or_app; now right].
      f_equal. destruct (do_bucket port one ts out) as [(ts1, out1)|] eqn:Result.
      + apply do_bucket_sound in Result. rewrite Result. apply IH.
        intros Member. apply Known, in_or_app. now left.
      + exfalso. apply Known. now left.
    - destruct (find _ content) as [(watched, one)|]; [|apply IH].
      destruct (do_bucket port one ts out) as [(ts1, out1)|] eqn:Result; intros Known.
      + apply do_bucket_sound in Result. rewrite Result. now apply IH.
      + exfalso. apply Known. now left.
    - intros Known. exfalso. apply Known. now left.
  Qed.
End Real.

(** Less is known after [forget]. *)
Lemma real_forget x p0 rest ts : exists rest', real x p0 rest ts = real x p0 rest' (forget ts).
Proof. destruct ts as [| |v p below]; [now exists []|now exists rest|now exists (real x p0 rest below)]. Qed.

(** * Rules *)

(** Actions have some effects, if it is not defined. *)
Lemma apply_some sw port acts : forall ts out, exists e, In e (apply sw port acts ts out).
Proof.
  induction acts as [|action acts IH]; intros ts out; cbn [apply].
  - eexists. now left.
  - destruct action; try (destruct (bucket port _ ts out) as [(ts', out')|]; [apply IH|];
      eexists; now left).
    destruct (group_of g (groups sw)) as [[content|content|content]|].
    + destruct (buckets port content ts out); [apply IH|]. eexists. now left.
    + destruct content as [|one others]; [apply IH|]. cbn [flat_map].
      destruct (bucket port one ts out) as [(ts', out')|].
      * destruct (IH ts out') as (e & Effect). exists e. apply in_or_app. now left.
      * eexists. now left.
    + destruct (find _ content) as [(watched, one)|]; [|apply IH].
      destruct (bucket port one ts out) as [(ts', out')|]; [apply IH|]. eexists. now left.
    + eexists. now left.
Qed.

Section Frames.
  Variables (dc : class) (xc : pattern) (d x p0 : N) (rest : stack).
  Hypotheses (Hd : in_class dc d = true) (Hx : fits xc x = true).
  Notation s := (source x).
  Notation real := (real x p0 rest).
  Notation real_copy := (real_copy x p0 rest).

  Lemma both_yes a b : both a b = Yes -> a = Yes /\ b = Yes.
  Proof. now destruct a, b. Qed.

  Lemma both_no a b : both a b = No -> a = No \/ b = No.
  Proof. destruct a, b; cbn; auto. Qed.

  Lemma matches_yes r port meta ts : fits (r_port r) port = true ->
    matches_class r meta (vids ts xc) (pcps ts) dc xc = Yes ->
    matches r port meta d s (real ts) = true.
  Proof.
    assert (Vid := vids_fit x p0 rest ts xc Hx). assert (Pcp := pcps_fit x p0 rest ts).
    unfold matches_class, matches. intros -> Yes.
    destruct (fits (r_meta r) meta); [|discriminate].
    destruct (fits_cube (r_vid r) _) eqn:In_vid in Yes; try discriminate;
      destruct (fits_cube (r_pcp r) _) eqn:In_pcp in Yes; try discriminate;
      destruct (fits_class (r_dst r) dc) eqn:Dst; try discriminate;
      apply both_yes in Yes as (Tag & Addresses); apply both_yes in Tag as (Tag & Tag');
      apply both_yes in Addresses as (To & Src); try discriminate.
    rewrite (fits_cube_yes _ _ _ In_vid Vid), (fits_cube_yes _ _ _ In_pcp Pcp).
    now rewrite (fits_class_yes _ _ _ Dst Hd), (fits_source_yes _ _ _ Src Hx).
  Qed.

  Lemma matches_no r port meta ts :
    matches_class r meta (vids ts xc) (pcps ts) dc xc = No ->
    matches r port meta d s (real ts) = false.
  Proof.
    assert (Vid := vids_fit x p0 rest ts xc Hx). assert (Pcp := pcps_fit x p0 rest ts).
    unfold matches_class, matches. intros Miss. destruct (fits (r_port r) port); [|reflexivity].
    destruct (fits (r_meta r) meta); [|reflexivity]. cbn [andb].
    assert (One : fits_cube (r_vid r) (vids ts xc) = No \/ fits_cube (r_pcp r) (pcps ts) = No
                  \/ fits_class (r_dst r) dc = No \/ fits_source (r_src r) xc = No).
    { destruct (fits_cube (r_vid r) (vids ts xc)); [|now left|];
        (destruct (fits_cube (r_pcp r) (pcps ts)); [|now right; left|];
         (destruct (fits_class (r_dst r) dc); [|now right; right; left|];
          apply both_no in Miss as [Miss|Miss]; try discriminate;
          apply both_no in Miss as [Miss|Miss]; try discriminate; auto)). }
    destruct One as [No|[No|[No|No]]].
    - now rewrite (fits_cube_no _ _ _ No Vid).
    - rewrite (fits_cube_no _ _ _ No Pcp). now rewrite andb_false_r.
    - rewrite (fits_class_no _ _ _ No Hd). now rewrite andb_false_r.
    - rewrite (fits_source_no _ _ _ No Hx). now rewrite andb_false_r.
  Qed.

  Definition level_of_port (port : N) (l : list rule) : list rule :=
    filter (fun r => fits (r_port r) port) l.

  Lemma other_port r port meta ts :
    fits (r_port r) port = false -> matches r port meta d s (real ts) = false.
  Proof. unfold matches. now intros ->. Qed.

  Lemma undecided_unknown r (hits : list rule) : undecided r dc <> Known hits.
  Proof. unfold undecided. now destruct (fits_class (r_dst r) dc). Qed.

  (** The rules of one priority that match, but for those that do the same as others. *)
  Definition level_hits (l hits : list rule) port meta ts : Prop :=
    (forall r, In r hits -> In r l /\ matches r port meta d s (real ts) = true)
    /\ forall r, In r l -> matches r port meta d s (real ts) = true ->
       exists r', In r' hits /\ alike r r' /\ r_more r = r_more r'.

  Lemma skipped_rule r l hits port meta ts : matches r port meta d s (real ts) = false ->
    level_hits l hits port meta ts -> level_hits (r :: l) hits port meta ts.
  Proof.
    intros Miss (Hits & All_hits). split.
    - intros r' Hit. destruct (Hits r' Hit). split; [now right|easy].
    - intros r' [<-|Member] Matches; [congruence|now apply All_hits].
  Qed.

  Lemma in_level_sound port meta ts : forall l hits,
    in_level (level_of_port port l) meta (vids ts xc) (pcps ts) dc xc = Known hits ->
    level_hits l hits port meta ts.
  Proof.
    induction l as [|r l IH]; intros hits; cbn [level_of_port filter].
    { intros Result. cbn in Result. injection Result as <-. easy. }
    destruct (fits (r_port r) port) eqn:Port.
    2: { intros Rest. apply skipped_rule; [now apply other_port|now apply IH]. }
    cbn [in_level]. fold (level_of_port port l).
    destruct (matches_class r meta (vids ts xc) (pcps ts) dc xc) eqn:Match.
    - destruct (in_level (level_of_port port l) meta (vids ts xc) (pcps ts) dc xc) as [others| |] eqn:Rest;
        try discriminate.
      destruct (IH _ eq_refl) as (Hits & All_hits). apply (matches_yes r port) in Match; [|easy].
      intros Result. injection Result as <-. destruct (existsb (does_as r) others) eqn:Known_effect.
      + split.
        * intros r' Hit. destruct (Hits r' Hit). split; [now right|easy].
        * intros r' [<-|Member] Matches; [|now apply All_hits].
          apply existsb_exists in Known_effect as (r' & Hit & Same). exists r'.
          split; [easy|]. split; [now apply does_as_alike|now apply does_as_more].
      + split.
        * intros r' [<-|Hit]; [split; [now left|easy]|].
          destruct (Hits r' Hit). split; [now right|easy].
        * intros r' [<-|Member] Matches.
          -- exists r. split; [now left|easy].
          -- destruct (All_hits r' Member Matches) as (r'' & Hit & Same). exists r''.
             split; [now right|easy].
    - intros Rest. apply skipped_rule; [now apply matches_no|now apply IH].
    - intros U. now apply undecided_unknown in U.
  Qed.

  (** A rule that may count; or none does. *)
  Definition selects (t : table) (r : rule) port meta ts : Prop :=
    may_count t r port meta d s (real ts) \/ missed t port meta d s (real ts) /\ r = no_rule.

  Definition table_hits (t : table) (hits : list rule) port meta ts : Prop :=
    (forall r, In r hits -> selects t r port meta ts)
    /\ forall r, selects t r port meta ts -> exists r', In r' hits /\ alike r r'.

  Lemma in_table_sound port meta ts : forall t hits,
    in_table (rules_of_port port t) meta (vids ts xc) (pcps ts) dc xc = Known hits ->
    table_hits t hits port meta ts.
  Proof.
    induction t as [|l t IH]; intros hits; cbn [rules_of_port map in_table].
    { intros Result. injection Result as <-. split.
      - intros r [<-|[]]. right. split; [|reflexivity]. now intros l r [].
      - intros r [(higher & level & lower & Split & _)|(_ & ->)]; [now destruct higher|].
        exists no_rule. split; [now left|easy]. }
    fold (level_of_port port l). fold (rules_of_port port t).
    destruct (in_level (level_of_port port l) meta (vids ts xc) (pcps ts) dc xc) as [hits0| |]
      eqn:Level; try discriminate; apply in_level_sound in Level as (Hits & All_hits).
    assert (Here : forall r, In r hits0 -> selects (l :: t) r port meta ts).
    { intros r Hit. destruct (Hits r Hit) as (Member & Matches). left. now exists [], l, t. }
    destruct (forallb r_more hits0) eqn:More.
    - assert (Uncertain : forall r, In r l -> certain r port meta d s (real ts) = false).
      { intros r Member. unfold certain.
        destruct (matches r port meta d s (real ts)) eqn:Matches; [|apply andb_false_r].
        destruct (All_hits r Member Matches) as (r' & Hit & _ & Same).
        rewrite forallb_forall in More. now rewrite Same, (More r' Hit). }
      destruct (in_table (rules_of_port port t) meta (vids ts xc) (pcps ts) dc xc) as [others| |] eqn:Rest;
        try discriminate. intros Result. injection Result as <-.
      destruct (IH _ eq_refl) as (Selects & All_select). split.
      + intros r Hit. apply in_app_or in Hit as [Hit|Hit]; [now apply Here|].
        destruct (Selects r Hit) as [(higher & level & lower & -> & Above & Member)|(Missed & ->)].
        * left. exists (l :: higher), level, lower. split; [reflexivity|]. split; [|easy].
          intros l' r' [<-|In_higher] In_level; [now apply Uncertain|now apply (Above l')].
        * right. split; [|reflexivity].
          intros l' r' [<-|In_lower] In_level; [now apply Uncertain|now apply (Missed l')].
      + intros r [(higher & level & lower & Split & Above & Member & Matches)|(Missed & ->)].
        * destruct higher as [|l' higher]; injection Split as <- ->.
          -- destruct (All_hits r Member Matches) as (r' & Hit & Same & _). exists r'.
             split; [apply in_or_app; now left|easy].
          -- destruct (All_select r) as (r' & Hit & Same).
             { left. exists higher, level, lower. split; [reflexivity|]. split; [|easy].
               intros l' r' In_higher In_level. apply (Above l'); [now right|easy]. }
             exists r'. split; [apply in_or_app; now right|easy].
        * destruct (All_select no_rule) as (r' & Hit & Same).
          { right. split; [|reflexivity]. intros l' r' In_lower. apply Missed. now right. }
          exists r'. split; [apply in_or_app; now right|easy].
    - intros Result. injection Result as <-. split; [exact Here|].
      assert (Sure : exists r, In r l /\ certain r port meta d s (real ts) = true).
      { assert (One : exists r, In r hits0 /\ r_more r = false).
        { clear - More. induction hits0 as [|r l IH]; [discriminate|]. cbn [forallb] in More.
          destruct (r_more r) eqn:Uncertain; [|exists r; split; [now left|easy]].
          destruct (IH More) as (r' & Member & Sure). exists r'. split; [now right|easy]. }
        destruct One as (r & Hit & Certain). destruct (Hits r Hit) as (Member & Matches). exists r.
        split; [easy|]. unfold certain. now rewrite Certain, Matches. }
      destruct Sure as (r0 & Member0 & Certain).
      intros r [(higher & level & lower & Split & Above & Member & Matches)|(Missed & ->)].
      + destruct higher as [|l' higher]; injection Split as <- Split.
        * destruct (All_hits r Member Matches) as (r' & Hit & Same & _). now exists r'.
        * rewrite (Above l r0 (or_introl eq_refl) Member0) in Certain. discriminate.
      + rewrite (Missed l r0 (or_introl eq_refl) Member0) in Certain. discriminate.
  Qed.

  (** The tables of a port, from number [from] on. *)
  Definition tables_from (sw : switch) (port : N) (from : nat) (l : list table) : Prop :=
    forall i, nth i l [] = rules_of_port port (nth (from + i) (tables sw) []).

  (** The choices are those that the relation allows; what is not defined is not among them. *)
  Definition all_choices (choices : list (list copy_seen)) (possible : option (list copy) -> Prop)
    : Prop :=
    (forall copies, In copies choices -> possible (Some (map real_copy copies)))
    /\ forall result, possible result ->
       exists copies, result = Some (map real_copy copies) /\ In copies choices.

  Lemma handle_sound sw port : forall l from target meta ts choices,
    tables_from sw port from l -> (from <= target)%nat ->
    handle sw port dc xc l from target meta ts = Known choices ->
    all_choices choices (handled sw port d s target meta (real ts)).
  Proof.
    induction l as [|t l IH]; intros from target meta ts choices Tables Order; cbn [handle].
    - specialize (Tables (target - from)%nat).
      replace (from + (target - from))%nat with target in Tables by lia.
      assert (Empty : nth target (tables sw) [] = []).
      { destruct (nth target (tables sw) []); [easy|]. destruct (target - from)%nat; discriminate Tables. }
      assert (Nothing : forall r, ~ may_count (nth target (tables sw) []) r port meta d s (real ts)).
      { rewrite Empty. intros r (higher & level & lower & Split & _). now destruct higher. }
      intros Result. injection Result as <-. split.
      + intros copies [<-|[]]. apply handled_miss. rewrite Empty. now intros l r [].
      + intros result Handled. inversion Handled; subst;
          try (exfalso; eapply Nothing; eassumption). exists []. split; [reflexivity|now left].
    - assert (Tables' : tables_from sw port (S from) l).
      { intros i. specialize (Tables (S i)). cbn [nth] in Tables. rewrite Tables.
        now rewrite PeanoNat.Nat.add_succ_r. }
      destruct (Nat.eqb from target) eqn:Here.
      2: { apply PeanoNat.Nat.eqb_neq in Here. apply IH; [easy|lia]. }
      apply PeanoNat.Nat.eqb_eq in Here. subst target.
      specialize (Tables O). cbn [nth] in Tables. rewrite PeanoNat.Nat.add_0_r in Tables. subst t.
      destruct (in_table (rules_of_port port _) meta (vids ts xc) (pcps ts) dc xc) as [hits| |] eqn:Table;
        try discriminate; apply in_table_sound in Table as (Select & All_select). cbv zeta.
      intros Collect. apply collect_sound in Collect as (Each_rule & Only_rules).
      (* All effects of a rule that is hit are known, so that these are the possible ones. *)
      assert (Performed : forall r of_rule,
        collect (fun e : effects_seen =>
          match e with
          | None => Refuse
          | Some (ts', out) =>
              match r_goto r with
              | None => Known [out]
              | Some next =>
                  if Nat.ltb from next
                  then collect (fun w =>
                    match handle sw port dc xc l (S from) next (written w meta) ts' with
                    | Known outs => Known (map (app out) outs)
                    | other => other
                    end) (r_write r :: r_writes r)
                  else Refuse
              end
          end) (perform sw port (r_acts r) ts []) = Known of_rule ->
        apply sw port (r_acts r) (real ts) []
        = map (real_effects x p0 rest) (perform sw port (r_acts r) ts [])).
      { intros r of_rule Effects. apply collect_sound in Effects as (Each_effect & _).
        apply (perform_sound x p0 rest sw port (r_acts r) ts []). intros Undefined.
        destruct (Each_effect None Undefined) as (some & Known_some & _). discriminate. }
      split.
      + intros copies Choice.
        destruct (Only_rules copies Choice) as (r & of_rule & Hit & Effects & In_rule).
        assert (Performs := Performed r of_rule Effects).
        apply collect_sound in Effects as (_ & Only_effects).
        destruct (Only_effects copies In_rule) as ([(ts', out)|] & some & Effect & Known_some & In_some);
          [|discriminate].
        assert (Real : In (Some (real ts', map real_copy out)) (apply sw port (r_acts r) (real ts) [])).
        { rewrite Performs. now apply (in_map (real_effects x p0 rest)) in Effect. }
        destruct (Select r Hit) as [Counts|(Missed & ->)].
        2: { injection Known_some as <-. destruct In_some as [<-|[]]. destruct Effect as [Effect|[]].
             injection Effect as <- <-. now apply handled_miss. }
        destruct (r_goto r) as [next|] eqn:Next.
        * destruct (Nat.ltb from next) eqn:Later; [|discriminate].
          apply PeanoNat.Nat.ltb_lt in Later. apply collect_sound in Known_some as (_ & Only_writes).
          destruct (Only_writes copies In_some) as (w & behind & Write & Handle & In_behind).
          destruct (handle sw port dc xc l (S from) next (written w meta) ts') as [outs| |] eqn:Rest;
            try discriminate. injection Handle as <-.
          apply in_map_iff in In_behind as (out' & <- & In_outs).
          apply IH in Rest as (Possible & _); [|easy|lia]. rewrite map_app.
          change (Some (map real_copy out ++ map real_copy out'))
            with (option_map (app (map real_copy out)) (Some (map real_copy out'))).
          eapply handled_goto; eauto.
        * injection Known_some as <-. destruct In_some as [<-|[]]. eapply handled_end; eauto.
      + assert (Effect_known : forall r e,
          selects (nth from (tables sw) []) r port meta ts ->
          In e (apply sw port (r_acts r) (real ts) []) -> exists r' e' of_effect, alike r r'
            /\ e = real_effects x p0 rest e'
            /\ match e' with
               | None => Refuse
               | Some (ts', out) =>
                   match r_goto r' with
                   | None => Known [out]
                   | Some next =>
                       if Nat.ltb from next
                       then collect (fun w =>
                         match handle sw port dc xc l (S from) next (written w meta) ts' with
                         | Known outs => Known (map (app out) outs)
                         | other => other
                         end) (r_write r' :: r_writes r')
                       else Refuse
                   end
               end = Known of_effect /\ incl of_effect choices).
        { intros r e Counts Effect. destruct (All_select r Counts) as (r' & Hit & Same).
          destruct (Each_rule r' Hit) as (of_rule & Effects & In_choices).
          assert (Performs := Performed r' of_rule Effects).
          destruct Same as (Acts & Same). rewrite Acts, Performs in Effect.
          apply in_map_iff in Effect as (e' & <- & Effect).
          apply collect_sound in Effects as (Each_effect & _).
          destruct (Each_effect e' Effect) as (of_effect & Known_effect & In_rule).
          exists r', e', of_effect. split; [easy|]. split; [easy|]. split; [exact Known_effect|].
          now apply incl_tran with of_rule. }
        intros result Handled. inversion Handled; subst.
        * destruct (Effect_known no_rule (Some (real ts, []))) as (r' & e' & some & Same & Real & Known_some & Incl).
          { right. now split. }
          { now left. }
          destruct e' as [(ts1, [|c1 out1])|]; try discriminate.
          destruct Same as (_ & _ & _ & Goto). rewrite <- Goto in Known_some.
          injection Known_some as <-. exists []. split; [reflexivity|]. apply Incl. now left.
        * match goal with Counts : may_count _ _ _ _ _ _ _, Effect : In _ _ |- _ =>
            destruct (Effect_known _ _ (or_introl Counts) Effect) as (r' & e' & some & Same & Real & Known_some & Incl) end.
          destruct e' as [(ts1, out1)|]; [|discriminate]. injection Real as -> ->.
          destruct Same as (_ & _ & _ & Goto). rewrite <- Goto in Known_some.
          match goal with Last : r_goto _ = None |- _ => rewrite Last in Known_some end.
          injection Known_some as <-. exists out1. split; [reflexivity|]. apply Incl. now left.
        * match goal with Counts : may_count _ _ _ _ _ _ _, Effect : In (Some _) _ |- _ =>
            destruct (Effect_known _ _ (or_introl Counts) Effect) as (r' & e' & some & Same & Real & Known_some & Incl) end.
          destruct e' as [(ts1, out1)|]; [|discriminate]. injection Real as -> ->.
          destruct Same as (_ & Write & Writes & Goto). rewrite <- Goto, <- Write, <- Writes in Known_some.
          match goal with Next : r_goto _ = Some _ |- _ => rewrite Next in Known_some end.
          destruct (Nat.ltb from t') eqn:Later; [|discriminate].
          apply PeanoNat.Nat.ltb_lt in Later.
          apply collect_sound in Known_some as (Each_write & _).
          match goal with Write : In ?w (_ :: _) |- _ =>
            destruct (Each_write w Write) as (behind & Handle & In_some) end.
          destruct (handle sw port dc xc l (S from) t' (written w meta) ts1) as [outs| |] eqn:Rest;
            try discriminate. injection Handle as <-.
          apply IH in Rest as (_ & All_results); [|easy|lia].
          match goal with Handled : handled _ _ _ _ t' _ _ _ |- _ =>
            destruct (All_results _ Handled) as (copies & -> & In_outs) end.
          exists (out1 ++ copies). split; [now rewrite map_app|]. apply Incl, In_some.
          now apply (in_map (app out1)).
        * match goal with Counts : may_count _ ?r _ _ _ _ _ |- _ =>
            assert (Some_effect : exists e, In e (apply sw port (r_acts r) (real ts) []));
            [|destruct Some_effect as (e & Effect);
              destruct (Effect_known _ _ (or_introl Counts) Effect) as (r' & e' & some & Same & _ & Known_some & Incl)] end.
          { apply apply_some. }
          destruct Same as (_ & _ & _ & Goto). rewrite <- Goto in Known_some.
          match goal with Next : r_goto _ = Some _ |- _ => rewrite Next in Known_some end.
          destruct e' as [(ts', out)|]; [|discriminate].
          destruct (Nat.ltb from t') eqn:Later; [|discriminate].
          apply PeanoNat.Nat.ltb_lt in Later. lia.
        * match goal with Counts : may_count _ _ _ _ _ _ _, Effect : In None _ |- _ =>
            destruct (Effect_known _ _ (or_introl Counts) Effect) as (r' & e' & some & Same & Real & Known_some & Incl) end.
          now destruct e' as [(ts1, out1)|].
  Qed.

  (** The same for the frame of a channel, with what is behind the ports. *)
  Definition real_out (o : out_seen) : out := (fst o, real (snd o)).
  Definition entered (fab : fabric) (c : N) (ts : view) (choices : list (list out_seen)) : Prop :=
    ~ undefined fab c d s (real ts)
    /\ (forall outs, In outs choices -> arrives fab c d s (real ts) (map real_out outs))
    /\ forall outs, arrives fab c d s (real ts) outs ->
       exists seen, In seen choices /\ outs = map real_out seen.

  Lemma resolved_real fab at_switch sw copies :
    map (resolved fab at_switch sw) (map real_copy copies)
    = map real_out (map (resolved_seen fab at_switch sw) copies).
  Proof. rewrite !map_map. reflexivity. Qed.

  Lemma arrive_sound fab rules c ts choices :
    rules c = tables_of fab c -> arrive fab rules c dc xc ts = Known choices ->
    entered fab c ts choices.
  Proof.
    unfold arrive, entered, undefined, arrives, enters, tables_of. intros ->.
    destruct (entering fab c) as (at_switch, port). cbn [fst snd].
    intros Collect. apply collect_sound in Collect as (Each & Only).
    assert (Handled : forall sw all,
      handle sw port dc xc (map (rules_of_port port) (tables sw)) 0 0 0 ts = Known all ->
      all_choices all (handled sw port d s 0 0 (real ts))).
    { intros sw all. apply handle_sound; [|lia]. intros i. cbn.
      apply (map_nth (rules_of_port port) _ [] i). }
    assert (Version : forall sw, In sw (versions fab at_switch) -> exists all,
      all_choices all (handled sw port d s 0 0 (real ts))
      /\ incl (map (map (resolved_seen fab at_switch sw)) all) choices).
    { intros sw Held. destruct (Each (sw, map (rules_of_port port) (tables sw))) as (some & Some_choices & Incl).
      - now apply (in_map (fun sw => (sw, map (rules_of_port port) (tables sw)))).
      - cbn [fst snd] in Some_choices.
        destruct (handle sw port dc xc _ 0 0 0 ts) as [all| |] eqn:Result; try discriminate.
        injection Some_choices as <-. exists all. split; [now apply Handled|easy]. }
    split; [|split].
    - intros (sw & Held & Undefined). destruct (Version sw Held) as (all & (_ & All_results) & _).
      destruct (All_results None Undefined) as (copies & Some_copies & _). discriminate.
    - intros outs Choice. destruct (Only outs Choice) as (v & some & Member & Some_choices & In_some).
      apply in_map_iff in Member as (sw & <- & Held). cbn [fst snd] in Some_choices.
      destruct (handle sw port dc xc _ 0 0 0 ts) as [all| |] eqn:Result; try discriminate.
      injection Some_choices as <-. apply in_map_iff in In_some as (copies & <- & In_all).
      destruct (Handled sw all Result) as (Possible & _).
      exists sw, (map real_copy copies). rewrite resolved_real.
      split; [split; [easy|now apply Possible]|reflexivity].
    - intros outs (sw & copies & (Held & Enters) & ->).
      destruct (Version sw Held) as (all & (_ & All_results) & Incl).
      destruct (All_results _ Enters) as (copies' & Same & Choice). injection Same as ->.
      exists (map (resolved_seen fab at_switch sw) copies'). split; [|apply resolved_real].
      now apply Incl, in_map.
  Qed.
End Frames.

(** * What becomes of frames *)

Section Outcomes.
  Variables (delivery : bool) (fab : fabric) (rk : ranking).

  Definition untagged (ts : stack) (h : N) : list N := match ts with [] => [h] | _ => [] end.

  (** Whatever a switch chooses: at most [k] moves, and, with [delivery], these hosts receive the
      frame. *)
  Inductive run (d s : N) : N -> stack -> N -> list N -> Prop :=
  | run_on c ts k to :
      ~ undefined fab c d s ts ->
      (exists outs, arrives fab c d s ts outs) ->
      (forall outs, arrives fab c d s ts outs -> exists k' to',
         k' <= k /\ (delivery = true -> Permutation to' to)
         /\ runs d s (queue_of fab c ts) outs k' to') ->
      run d s c ts k to
  with runs (d s : N) : N -> list out -> N -> list N -> Prop :=
  | runs_end q : runs d s q [] 1 []
  | runs_lost q ts more k to : runs d s q more k to -> runs d s q ((Nowhere, ts) :: more) (1 + k) to
  | runs_host q h ts more k to :
      runs d s q more k to -> runs d s q ((ToHost h, ts) :: more) (1 + k) (untagged ts h ++ to)
  | runs_channel q c ts more k to k' to' :
      rank rk q < rank rk (queue_of fab c ts) ->
      rank rk (queue_of fab c ts) <= bound rk ->
      (delivery = true -> may_fail fab c = false) ->
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
    exists k' to', runs d s q (p1 ++ p2) k' to' /\ k = 1 + k'
      /\ Permutation to (untagged ts h ++ to').
  Proof.
    induction p1 as [|o p1 IH]; cbn [app]; intros k to H; inversion H; subst.
    - eauto 8.
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & R & -> & P) end.
      exists (1 + k1), to1. split; [apply runs_lost, R|]. split; [lia|exact P].
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & R & -> & P) end.
      eexists _, _. split; [apply runs_host, R|]. split; [lia|].
      rewrite P. apply Permutation_app_swap_app.
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & R & -> & P) end.
      eexists _, _. split; [eapply runs_channel; eassumption|]. split; [lia|].
      rewrite P. apply Permutation_app_swap_app.
  Qed.

  Lemma runs_split_channel d s q c ts (p1 p2 : list out) : forall k to,
    runs d s q (p1 ++ (ToChannel c, ts) :: p2) k to ->
    exists k' to' kc tc, runs d s q (p1 ++ p2) k' to' /\ run d s c ts kc tc
      /\ rank rk q < rank rk (queue_of fab c ts)
      /\ rank rk (queue_of fab c ts) <= bound rk
      /\ (delivery = true -> may_fail fab c = false)
      /\ k = 1 + kc + k' /\ Permutation to (tc ++ to').
  Proof.
    induction p1 as [|o p1 IH]; cbn [app]; intros k to H; inversion H; subst.
    - do 4 eexists. repeat apply conj; eauto.
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & kc & tc & R & C & L & B & U & -> & P) end.
      exists (1 + k1), to1, kc, tc. repeat apply conj; auto; [apply runs_lost, R|lia].
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & kc & tc & R & C & L & B & U & -> & P) end.
      eexists (1 + k1), _, kc, tc. repeat apply conj; auto; [apply runs_host, R|lia|].
      rewrite P. apply Permutation_app_swap_app.
    - match goal with X : runs _ _ _ (_ ++ _ :: _) _ _ |- _ =>
        destruct (IH _ _ X) as (k1 & to1 & kc & tc & R & C & L & B & U & -> & P) end.
      do 4 eexists. split; [eapply runs_channel; eassumption|].
      repeat apply conj; eauto; [lia|].
      rewrite P, !app_assoc. apply Permutation_app_tail, Permutation_app_comm.
  Qed.
End Outcomes.

(** * Outcomes *)

Definition numbers (r : N * N) : list N :=
  map N.of_nat (seq (N.to_nat (fst r)) (N.to_nat (snd r) - N.to_nat (fst r))).
Definition members (l : ranges) : list N := flat_map numbers l.

Lemma members_just h : members (just h) = [h].
Proof.
  unfold members, just, numbers. cbn [flat_map fst snd]. rewrite N2Nat.inj_succ.
  replace (S (N.to_nat h) - N.to_nat h)%nat with 1%nat by lia. cbn. now rewrite N2Nat.id.
Qed.

Lemma numbers_joined a b c : a <= b -> b <= c -> numbers (a, c) = numbers (a, b) ++ numbers (b, c).
Proof.
  intros One Two. unfold numbers. cbn [fst snd]. rewrite <- map_app.
  replace (seq (N.to_nat b) (N.to_nat c - N.to_nat b))
    with (seq (N.to_nat a + (N.to_nat b - N.to_nat a)) (N.to_nat c - N.to_nat b)) by (f_equal; lia).
  rewrite <- seq_app. do 2 f_equal. lia.
Qed.

Lemma members_before r l : members (before r l) = numbers r ++ members l.
Proof.
  destruct l as [|(first, last) l]; [reflexivity|]. cbn [before].
  destruct ((snd r =? first) && _ && _) eqn:Adjacent; [|reflexivity].
  rewrite !andb_true_iff, N.eqb_eq, !N.leb_le in Adjacent.
  destruct Adjacent as ((Last & One) & Two), r as (a, b). cbn [fst snd] in *. subst b.
  cbn [members flat_map]. now rewrite (numbers_joined a first last), app_assoc.
Qed.

Lemma members_together a : forall b, Permutation (members (together a b)) (members a ++ members b).
Proof.
  induction a as [|r a IH]; [reflexivity|].
  induction b as [|r' b IH_b]; cbn [together]; [now rewrite app_nil_r|].
  destruct (fst r <? fst r'); rewrite members_before.
  - rewrite IH. cbn [members flat_map]. now rewrite <- app_assoc.
  - fold (together (r :: a)). cbn [together] in IH_b. rewrite IH_b.
    change (members (r' :: b)) with (numbers r' ++ members b). rewrite !app_assoc.
    apply Permutation_app_tail, Permutation_app_comm.
Qed.

(** From here on [members_together] says what it is. *)
Opaque together.

Section Descriptions.
  Variables (delivery : bool) (fab : fabric).

  Definition owners_of (d : N) (l : list N) : list N := filter (is_host fab d) l.

  (** An outcome says who receives a frame to [d]: [to]. Without [delivery] it says nothing. *)
  Definition describes (o : outcome) (d : N) (to : list N) : Prop :=
    delivery = true ->
    Permutation (match o with Exactly l => members l | ToOwner => owners_of d (hosts fab) end) to.

  Lemma describes_same o d to to' : describes o d to -> describes o d to' ->
    delivery = true -> Permutation to to'.
  Proof.
    intros One Two Delivery. specialize (One Delivery). specialize (Two Delivery).
    now rewrite <- One.
  Qed.

  (** An address of the class. *)
  Definition within (dc : class) (d : N) : Prop := in_class dc d = true /\ d <= N.ones 48.

  (** The owners of some addresses are all in the list. *)
  Definition has_owners (addresses : N -> Prop) (owners : list N) : Prop :=
    forall d, addresses d -> owners_of d owners = owners_of d (hosts fab).

  Lemma has_owners_in (addresses : N -> Prop) dc owners : has_owners addresses owners ->
    has_owners (fun d => addresses d /\ in_class dc d = true) (owners_in fab dc owners).
  Proof.
    intros Owners d (Address & Member). rewrite <- (Owners d Address). clear Owners Address.
    unfold owners_of, owners_in. induction owners as [|h l IH]; [easy|]. cbn [filter].
    destruct (is_host fab d h) eqn:Owner.
    - assert (Mac := Owner). unfold is_host in Mac. apply N.eqb_eq in Mac. rewrite Mac, Member.
      cbn [filter]. now rewrite Owner, IH.
    - destruct (in_class dc (mac fab h)); [cbn [filter]; now rewrite Owner|easy].
  Qed.

  Lemma to_owner_describes owners o d to : owners_of d owners = owners_of d (hosts fab) ->
    to_owner owners o = true -> describes o d to -> delivery = true ->
    owners_of d (hosts fab) = [] \/ Permutation (owners_of d (hosts fab)) to.
  Proof.
    intros Owners Check Describes Delivery. specialize (Describes Delivery).
    destruct o as [l|]; [|now right].
    rewrite <- Owners. destruct owners as [|w [|w' owners]]; cbn [to_owner] in Check.
    - now left.
    - destruct l as [|r [|r' l]]; try discriminate. apply pattern_eqb_eq in Check. subst r.
      change [(w, N.succ w)] with (just w) in Describes. rewrite members_just in Describes.
      cbn. destruct (is_host fab d w); [now right|now left].
    - now destruct l as [|r [|r' l]].
  Qed.

  Lemma only_address value d : value <= N.ones 48 -> d <= N.ones 48 ->
    fits (value, N.ones 48) d = true -> d = value.
  Proof.
    intros Value Address Fits. rewrite fits_spec in Fits. cbn [fst snd] in Fits.
    assert (High : forall n i, n <= N.ones 48 -> 48 <= i -> N.testbit n i = false).
    { intros n i Small Above. rewrite <- (N.mod_small n (2 ^ 48)).
      - now apply N.mod_pow2_bits_high.
      - apply N.le_lt_trans with (1 := Small). reflexivity. }
    apply N.bits_inj. intros i. destruct (N.lt_ge_cases i 48) as [Low|Above].
    - apply Fits. now apply N.ones_spec_low.
    - now rewrite !High.
  Qed.

  Lemma only_owner_describes dc owners o d to : within dc d ->
    owners_of d owners = owners_of d (hosts fab) ->
    only_owner (mac fab) dc owners o = true -> describes o d to -> describes ToOwner d to.
  Proof.
    intros (Member & Address) Owners Check Describes Delivery. specialize (Describes Delivery).
    destruct o as [l|]; [|easy]. rewrite <- Owners.
    destruct l as [|r [|r' l]], owners as [|w [|w' owners]]; try discriminate Check; [easy|].
    cbn [only_owner] in Check. rewrite !andb_true_iff in Check.
    destruct Check as (((Host & Mask) & Value) & Small).
    apply N.eqb_eq in Mask, Value. apply N.leb_le in Small. apply pattern_eqb_eq in Host. subst r.
    change [(w, N.succ w)] with (just w) in Describes. rewrite members_just in Describes.
    unfold in_class in Member. apply andb_true_iff in Member as (Fits & _).
    rewrite (surjective_pairing (fst dc)), Mask, Value in Fits.
    apply only_address in Fits; [|easy|easy]. subst d. cbn. unfold is_host.
    now rewrite N.eqb_refl.
  Qed.

  Lemma outcome_and_describes a b o d to to' : outcome_and a b = Some o ->
    describes a d to -> describes b d to' -> describes o d (to ++ to').
  Proof.
    intros Result A B Delivery. specialize (A Delivery). specialize (B Delivery).
    rewrite <- A, <- B.
    destruct a as [[|r l]|], b as [[|r' l']|]; cbn [outcome_and] in Result; try discriminate;
      injection Result as <-; try apply members_together; rewrite ?app_nil_r; reflexivity.
  Qed.

  Lemma join_describes dc dc' owners owners' a b o d to :
    join (mac fab) dc dc' owners owners' a b = Some o ->
    within dc d /\ owners_of d owners = owners_of d (hosts fab) /\ describes a d to
    \/ within dc' d /\ owners_of d owners' = owners_of d (hosts fab) /\ describes b d to ->
    describes o d to.
  Proof.
    intros Join One. unfold join in Join.
    assert (Both : (if only_owner (mac fab) dc owners a && only_owner (mac fab) dc' owners' b
                    then Some ToOwner else None) = Some o -> describes o d to).
    { destruct (only_owner (mac fab) dc owners a) eqn:A; [|discriminate].
      destruct (only_owner (mac fab) dc' owners' b) eqn:B; [|discriminate].
      intros Result. injection Result as <-.
      destruct One as [(Within & Owners & Describes)|(Within & Owners & Describes)];
        eapply only_owner_describes; eassumption. }
    destruct a as [l|], b as [l'|]; try now apply Both.
    destruct (patterns_eqb l l') eqn:Equal; [|now apply Both].
    apply patterns_eqb_eq in Equal. subst l'. injection Join as <-.
    now destruct One as [(_ & _ & Describes)|(_ & _ & Describes)].
  Qed.
End Descriptions.

(** * The search *)

Section Search.
  Variables (delivery loose : bool) (fab : fabric) (rk : ranking) (rules : N -> list held)
    (tests : N -> tested).
  Hypothesis Rules : forall c, rules c = tables_of fab c.

  (** What becomes of a frame on a channel, and of one in its buffer. *)
  Definition ends (o : outcome) (d x p0 : N) (rest : stack) (c : N) (ts : view) : Prop :=
    exists k to, run delivery fab rk d (source x) c (real x p0 rest ts) k to
      /\ describes delivery fab o d to.
  (** It is in a queue of the rank [from], or of a lower one. *)
  Definition holds (from q : N) : Prop := rank rk q <= from \/ bound rk <= from.
  Definition all_end (o : outcome) (d x p0 : N) (rest : stack) (from : N) (outs : list out_seen)
    : Prop :=
    exists k to, (forall q, holds from q ->
                  runs delivery fab rk d (source x) q (map (real_out x p0 rest) outs) k to)
      /\ describes delivery fab o d to.

  (** An outcome of frames to some addresses, with the choice [x] or one like it. *)
  Definition ends_so (k : known) (addresses : N -> Prop) (x c : N) (ts : view) : Prop :=
    forall d x' p0 rest, addresses d -> fits (x, fst k) x' = true -> p0 < 8 ->
    ends (snd k) d x' p0 rest c ts.

  Definition inside (value : bool) (dc : class) (bit : N) (addresses : N -> Prop) (d : N) : Prop :=
    addresses d /\ in_class (half value dc bit) d = true.

  Definition chosen (value : bool) (both : part * part) : part :=
    if value then snd both else fst both.

  (** Of frames to some addresses of a class. *)
  Inductive memo_sound : (N -> Prop) -> class -> memo -> Prop :=
  | outcomes_sound (addresses : N -> Prop) dc m :
      (forall c ts x k, recall m c ts x = Some k -> ends_so k addresses x c ts) ->
      (forall bit both, parts_by bit (parts m) = Some both -> forall value,
         has_owners fab (inside value dc bit addresses) (fst (chosen value both))
         /\ memo_sound (inside value dc bit addresses) (half value dc bit)
              (snd (chosen value both))) ->
      memo_sound addresses dc m.

  Definition part_sound (value : bool) (dc : class) (bit : N) (addresses : N -> Prop) (p : part)
    : Prop :=
    has_owners fab (inside value dc bit addresses) (fst p)
    /\ memo_sound (inside value dc bit addresses) (half value dc bit) (snd p).

  Lemma memo_sound_empty addresses dc : memo_sound addresses dc blank.
  Proof. now constructor. Qed.

  Lemma value_eqb_eq a b : value_eqb a b = true -> a = b.
  Proof. destruct a, b; cbn; try easy. rewrite N.eqb_eq. now intros ->. Qed.

  Lemma view_eqb_eq a : forall b, view_eqb a b = true -> a = b.
  Proof.
    induction a as [| |v p a IH]; intros [| |v' p' b]; cbn [view_eqb]; try easy.
    rewrite !andb_true_iff. intros ((V & P) & Below).
    now rewrite (value_eqb_eq _ _ V), (value_eqb_eq _ _ P), (IH _ Below).
  Qed.

  Lemma recall_remember m c ts s k c' ts' s' k' :
    recall (remember m c ts s k) c' ts' s' = Some k' ->
    (c' = c /\ ts' = ts /\ fits (s, fst k) s' = true /\ k' = k) \/ recall m c' ts' s' = Some k'.
  Proof.
    unfold recall, remember. cbn [outcomes].
    destruct (Map.find (Map.add _ c _) c') as [l|] eqn:Added; [|discriminate].
    apply find_added in Added as [(-> & ->)|Old]; [|rewrite Old; now right]. cbn [assoc].
    destruct (view_eqb ts' ts && fits (s, fst k) s') eqn:Same.
    - intros Found. injection Found as <-. left. apply andb_true_iff in Same as (Same & Fits).
      apply view_eqb_eq in Same. destruct k. easy.
    - destruct (Map.find (outcomes m) c); [now right|discriminate].
  Qed.

  Lemma memo_sound_remember addresses dc m c ts s k : memo_sound addresses dc m ->
    ends_so k addresses s c ts -> memo_sound addresses dc (remember m c ts s k).
  Proof.
    intros Sound New. destruct Sound as [addresses dc m Outcomes Parts]. constructor; [|exact Parts].
    intros c' ts' s' k' Found.
    apply recall_remember in Found as [(-> & -> & Fits & ->)|Found]; [|now apply Outcomes].
    intros d x p0 rest Address Like Small. apply New; [easy| |easy]. now apply fits_agreeing with s'.
  Qed.

  Lemma parts_by_with bit both bit' l :
    parts_by bit' (with_parts bit both l) = if bit' =? bit then Some both else parts_by bit' l.
  Proof.
    induction l as [|(by_bit, old) l IH]; cbn [with_parts parts_by]; [reflexivity|].
    destruct (bit =? by_bit) eqn:Here; cbn [parts_by].
    - apply N.eqb_eq in Here. subst by_bit. now destruct (bit' =? bit).
    - rewrite IH. destruct (bit' =? by_bit) eqn:There; [|reflexivity].
      apply N.eqb_eq in There. subst bit'. now rewrite N.eqb_sym, Here.
  Qed.

  Lemma memo_sound_parts addresses dc m bit both : memo_sound addresses dc m ->
    (forall value, part_sound value dc bit addresses (chosen value both)) ->
    memo_sound addresses dc (remember_parts m bit both).
  Proof.
    intros Sound New. destruct Sound as [addresses dc m Outcomes Parts].
    constructor; [exact Outcomes|]. intros bit' both' Found. cbn [parts remember_parts] in Found.
    rewrite parts_by_with in Found. destruct (bit' =? bit) eqn:Same; [|now apply Parts].
    apply N.eqb_eq in Same. subst bit'. injection Found as <-. exact New.
  Qed.

  Lemma parts_of_sound addresses dc m owners bit value : memo_sound addresses dc m ->
    has_owners fab addresses owners ->
    part_sound value dc bit addresses (chosen value (parts_of fab m dc owners bit)).
  Proof.
    intros Sound Owners. unfold parts_of. destruct (parts_by bit (parts m)) as [both|] eqn:Found.
    - destruct Sound as [addresses dc m _ Parts]. now apply Parts.
    - split; [|destruct value; apply memo_sound_empty].
      destruct value; now apply has_owners_in.
  Qed.

  (** [go] follows frames with the choice [s]. *)
  Definition sound (addresses : N -> Prop) (dc : class) (s : N)
    (go : memo -> N -> view -> option (memo * known)) : Prop :=
    forall m c ts m' k, memo_sound addresses dc m -> go m c ts = Some (m', k) ->
    memo_sound addresses dc m' /\ ends_so k addresses s c ts.

  Lemma priority_real x p0 rest ts p : priority ts = Some p -> pcp (real x p0 rest ts) = p.
  Proof.
    destruct ts as [| |v [p'|] below]; cbn; try discriminate; intros Some_p; now injection Some_p.
  Qed.

  Lemma in_priorities p0 : p0 < 8 -> In p0 priorities.
  Proof.
    intros Small. unfold priorities. destruct p0 as [|p]; [now left|].
    do 3 (destruct p as [p|p|]; try (cbn; tauto); try (exfalso; lia)).
  Qed.

  Lemma holds_on x p0 rest c ts : p0 < 8 ->
    holds (rank_on fab rk c ts) (queue_of fab c (real x p0 rest ts)).
  Proof.
    intros Small. unfold queue_of. destruct ts as [| |v [p|] below]; [left; reflexivity| |left; reflexivity|].
    { right. reflexivity. }
    left. unfold rank_on. cbn [priority real pcp]. set (of_priority := fun p => _).
    change (of_priority p0 <= fold_right N.max 0 (map of_priority priorities)).
    assert (Member := in_priorities p0 Small).
    induction priorities as [|p l IH]; [easy|]. cbn [map fold_right].
    destruct Member as [->|Member]; [apply N.le_max_l|].
    apply N.le_trans with (1 := IH Member). apply N.le_max_r.
  Qed.

  Lemma real_on_channel x p0 rest ts :
    exists rest', real x p0 rest ts = real x p0 rest' (on_channel loose ts).
  Proof. unfold on_channel. destruct loose; [apply real_forget|now exists rest]. Qed.

  Lemma follow_all_sound addresses dc s0 go from : sound addresses dc s0 go ->
    forall outs m m' k0, memo_sound addresses dc m ->
    follow_all delivery loose fab rk go from m outs = Some (m', k0) ->
    memo_sound addresses dc m'
    /\ forall d x p0 rest, addresses d -> fits (s0, fst k0) x = true -> p0 < 8 ->
       all_end (snd k0) d x p0 rest from outs.
  Proof.
    intros Go. induction outs as [|([h|c|], ts) outs IH]; intros m m' k0 Sound; cbn [follow_all].
    - intros Result; injection Result as <- <-. split; [easy|].
      intros. exists 1, []. split; [constructor|intros _; reflexivity].
    - destruct delivery eqn:Delivery.
      + destruct ts; try discriminate.
        destruct (follow_all true loose fab rk go from m outs) as [(m1, (bits, [l|]))|] eqn:Rest; try discriminate.
        intros Result; injection Result as <- <-. destruct (IH _ _ _ Sound Rest) as (Sound' & End).
        split; [easy|]. intros d x p0 rest Hd Hx Small.
        destruct (End d x p0 rest Hd Hx Small) as (k & to & Run & Describes).
        exists (1 + k), (h :: to). split; [intros q Holds; apply (runs_host _ _ _ _ _ _ h []), Run, Holds|].
        intros Yes. specialize (Describes Yes). cbn [snd] in *.
        rewrite members_together, members_just. now constructor.
      + intros Rest. destruct (IH _ _ _ Sound Rest) as (Sound' & End). split; [easy|].
        intros d x p0 rest Hd Hx Small.
        destruct (End d x p0 rest Hd Hx Small) as (k & to & Run & _).
        exists (1 + k), (untagged (real x p0 rest ts) h ++ to).
        split; [intros q Holds; apply runs_host, Run, Holds|]. unfold describes. congruence.
    - destruct (priority ts) as [p|] eqn:Priority; [|discriminate].
      cbv zeta. destruct ((from <? _) && _ && _) eqn:Ranks; [|discriminate].
      apply andb_true_iff in Ranks as (Ranks & Sure). apply andb_true_iff in Ranks as (Rises & Bounded).
      apply N.ltb_lt in Rises. apply N.leb_le in Bounded.
      assert (Reliable : delivery = true -> may_fail fab c = false).
      { intros Delivery. rewrite Delivery in Sure. now apply negb_true_iff in Sure. }
      destruct (go m c (on_channel loose ts)) as [(m1, (bits1, o1))|] eqn:First; [|discriminate].
      destruct (follow_all delivery loose fab rk go from m1 outs) as [(m2, (bits2, o2))|] eqn:Rest; [|discriminate].
      destruct (outcome_and o1 o2) as [o3|] eqn:And; [|discriminate].
      intros Result; injection Result as <- <-.
      destruct (Go _ _ _ _ _ Sound First) as (Sound1 & End1).
      destruct (IH _ _ _ Sound1 Rest) as (Sound2 & End2).
      split; [easy|]. intros d x p0 rest Hd Hx Small. apply fits_both in Hx as (Hx1 & Hx2).
      destruct (real_on_channel x p0 rest ts) as (rest' & Real).
      destruct (End1 d x p0 rest' Hd Hx1 Small) as (k1 & to1 & Run1 & Describes1).
      destruct (End2 d x p0 rest Hd Hx2 Small) as (k2 & to2 & Run2 & Describes2).
      exists (1 + k1 + k2), (to1 ++ to2). split.
      + intros q Holds. assert (Queue : queue_of fab c (real x p0 rest ts) = queue fab c p).
        { unfold queue_of. f_equal. now apply priority_real. }
        cbn [map]. apply runs_channel; cbn [real_out snd]; rewrite ?Queue; try easy.
        * destruct Holds as [Holds|Holds]; lia.
        * now rewrite Real.
        * now apply Run2.
      + now apply (outcome_and_describes delivery fab o1 o2).
    - intros Rest. destruct (IH _ _ _ Sound Rest) as (Sound' & End). split; [easy|].
      intros d x p0 rest Hd Hx Small. destruct (End d x p0 rest Hd Hx Small) as (k & to & Run & Describes).
      exists (1 + k), to. split; [|easy]. intros q Holds. now constructor; apply Run.
  Qed.

  (** The same of all choices. *)
  Definition choices_end (o : outcome) (d x p0 : N) (rest : stack) (from : N)
    (choices : list (list out_seen)) : Prop :=
    exists k to, describes delivery fab o d to /\ forall outs, In outs choices ->
      exists k' to', k' <= k /\ (delivery = true -> Permutation to' to)
        /\ forall q, holds from q ->
           runs delivery fab rk d (source x) q (map (real_out x p0 rest) outs) k' to'.

  Lemma follow_each_sound dc (addresses : N -> Prop) s0 owners go from :
    sound addresses dc s0 go ->
    (forall d, addresses d -> within dc d) -> has_owners fab addresses owners ->
    forall choices m m' k, memo_sound addresses dc m ->
    follow_each delivery loose fab rk go from dc owners m choices = Some (m', k) ->
    memo_sound addresses dc m' /\ choices <> []
    /\ forall d x p0 rest, addresses d -> fits (s0, fst k) x = true -> p0 < 8 ->
       choices_end (snd k) d x p0 rest from choices.
  Proof.
    intros Go Class Owners. induction choices as [|outs choices IH]; [easy|].
    intros m m' k0 Sound. cbn [follow_each].
    destruct (follow_all delivery loose fab rk go from m outs) as [(m1, (bits1, o1))|] eqn:First.
    2: now destruct choices.
    destruct (follow_all_sound _ _ _ _ _ Go _ _ _ _ Sound First) as (Sound1 & End1).
    destruct choices as [|outs2 choices].
    - intros Result. injection Result as <- <-. split; [easy|]. split; [easy|].
      intros d x p0 rest Address Source Small.
      destruct (End1 d x p0 rest Address Source Small) as (k & to & Runs & Describes).
      exists k, to. split; [easy|]. intros outs' [<-|[]]. exists k, to. split; [lia|]. easy.
    - set (more := outs2 :: choices) in *. clearbody more.
      destruct (follow_each delivery loose fab rk go from dc owners m1 more) as [(m2, (bits2, o2))|] eqn:Rest;
        [|discriminate].
      destruct (join (mac fab) dc dc owners owners o1 o2) as [o3|] eqn:Join; [|discriminate].
      intros Result. injection Result as <- <-.
      destruct (IH _ _ _ Sound1 Rest) as (Sound2 & _ & End2). split; [easy|]. split; [easy|].
      intros d x p0 rest Address Source Small. apply fits_both in Source as (Source1 & Source2).
      destruct (End1 d x p0 rest Address Source1 Small) as (k1 & to1 & Runs1 & Describes1).
      destruct (End2 d x p0 rest Address Source2 Small) as (k2 & to2 & Describes2 & Runs2).
      assert (One : describes delivery fab o3 d to1).
      { eapply join_describes; [exact Join|left].
        split; [now apply Class|]. split; [now apply Owners|easy]. }
      assert (Two : describes delivery fab o3 d to2).
      { eapply join_describes; [exact Join|right].
        split; [now apply Class|]. split; [now apply Owners|easy]. }
      exists (N.max k1 k2), to1. split; [easy|]. intros outs' [<-|Choice].
      + exists k1, to1. split; [lia|]. easy.
      + destruct (Runs2 outs' Choice) as (k' & to' & Bound & Same & Runs'). exists k', to'.
        split; [lia|]. split; [|easy]. intros Delivery. rewrite (Same Delivery).
        now apply describes_same with delivery fab o3 d.
  Qed.

  Lemma follow_sound fuel : forall dc (addresses : N -> Prop) owners s,
    (forall d, addresses d -> within dc d) -> has_owners fab addresses owners ->
    sound addresses dc s (follow delivery loose fab rk rules tests fuel dc owners s).
  Proof.
    induction fuel as [|fuel IH]; intros dc addresses owners s Class Owners m c ts m' k0 Sound;
      cbn [follow]; destruct (recall m c ts s) as [k1|] eqn:Found.
    1, 3: intros Result; injection Result as <- <-; split; [easy|];
      destruct Sound as [addresses dc m Outcomes _]; now apply Outcomes.
    1: discriminate.
    cbv zeta. set (bits := telling_bits _ _ _ _). set (bit := dividing _ _).
    destruct (arrive fab rules c dc (s, bits) ts) as [choices|p|] eqn:Arrive; [| |discriminate].
    - destruct (follow_each _ _ _ _ (follow delivery loose fab rk rules tests fuel dc owners s)
                  (rank_on fab rk c ts) dc owners m choices) as [(m1, (bits1, o1))|] eqn:Rest;
        [|discriminate].
      intros Result; injection Result as <- <-.
      destruct (follow_each_sound _ _ _ _ _ _ (IH _ _ _ s Class Owners) Class Owners _ _ _ _ Sound
                  Rest) as (Sound1 & Some_choice & End).
      assert (Ends : ends_so (N.lor bits bits1, o1) addresses s c ts).
      { intros d x p0 rest Hd Like Small. apply fits_both in Like as (Hx & Hx1).
        destruct (End d x p0 rest Hd Hx1 Small) as (k & to & Describes & Runs).
        destruct (Class d Hd) as (Member & _).
        destruct (arrive_sound dc (s, bits) d x p0 rest Member Hx _ _ _ _ _ (Rules c) Arrive)
          as (Defined & Possible & Only).
        exists k, to. split; [|easy]. constructor; [easy| |].
        - destruct choices as [|outs choices]; [easy|]. eexists. apply Possible. now left.
        - intros outs Arrives. destruct (Only outs Arrives) as (seen & Choice & ->).
          destruct (Runs seen Choice) as (k' & to' & Fewer & Same & Runs'). exists k', to'.
          split; [easy|]. split; [easy|]. apply Runs'. now apply holds_on. }
      split; [now apply memo_sound_remember|exact Ends].
    - specialize (parts_of_sound addresses dc m owners (bit p)) as Part.
      destruct (parts_of fab m dc owners (bit p)) as (zero, one) eqn:Parts.
      assert (Zero_part := Part false Sound Owners). assert (One_part := Part true Sound Owners).
      clear Part. unfold part_sound, chosen in Zero_part, One_part. cbn [fst snd] in Zero_part, One_part.
      destruct (follow _ _ _ _ _ _ fuel (half false dc _) _ _ _ _ _) as [(m1, (bits1, o1))|] eqn:Zero;
        [|discriminate].
      destruct (follow _ _ _ _ _ _ fuel (half true dc _) _ _ _ _ _) as [(m2, (bits2, o2))|] eqn:One;
        [|discriminate].
      destruct (join _ _ _ _ _ o1 o2) as [o3|] eqn:Join; [|discriminate].
      intros Result; injection Result as <- <-.
      assert (In_part : forall value d, inside value dc (bit p) addresses d ->
        within (half value dc (bit p)) d).
      { intros value d (Address & Member). split; [easy|]. now apply Class. }
      destruct Zero_part as (Zero_owners & Zero_sound), One_part as (One_owners & One_sound).
      destruct (IH _ _ _ s (In_part false) Zero_owners _ _ _ _ _ Zero_sound Zero)
        as (Zero_sound1 & Zero_ends).
      destruct (IH _ _ _ s (In_part true) One_owners _ _ _ _ _ One_sound One)
        as (One_sound1 & One_ends).
      assert (Ends : ends_so (N.lor bits1 bits2, o3) addresses s c ts).
      { intros d x p0 rest Hd Like Small. apply fits_both in Like as (Like1 & Like2).
        destruct (Class d Hd) as (In_class & Address).
        destruct (halves_contain dc (bit p) d In_class) as ([|] & Member).
        - destruct (One_ends d x p0 rest) as (k & to & Run & Describes); [easy|easy|easy|].
          exists k, to. split; [easy|]. eapply join_describes; [exact Join|right].
          split; [easy|]. split; [now apply One_owners|easy].
        - destruct (Zero_ends d x p0 rest) as (k & to & Run & Describes); [easy|easy|easy|].
          exists k, to. split; [easy|]. eapply join_describes; [exact Join|left].
          split; [easy|]. split; [now apply Zero_owners|easy]. }
      split; [|exact Ends]. apply memo_sound_remember; [|exact Ends].
      apply memo_sound_parts; [exact Sound|]. intros [|]; now split.
  Qed.
End Search.

(** * What hosts send *)

Lemma permutation_filter (f : N -> bool) a b : Permutation a b -> Permutation (filter f a) (filter f b).
Proof.
  induction 1 as [|x a b Same IH|x y a|a b c Same IH Same' IH']; cbn.
  - constructor.
  - destruct (f x); [now constructor|easy].
  - destruct (f x), (f y); try constructor; reflexivity.
  - now rewrite IH.
Qed.

(** What is known of a frame that a host may send. *)
Definition followed (delivery : bool) (fab : fabric) (rk : ranking) (h : N) (f : frame) : Prop :=
  ~ undefined fab (from_host fab h) (dst f) (src f) (tags f)
  /\ (exists outs, arrives fab (from_host fab h) (dst f) (src f) (tags f) outs)
  /\ exists k to,
    (forall outs, arrives fab (from_host fab h) (dst f) (src f) (tags f) outs -> exists k' to',
       k' <= k /\ (delivery = true -> Permutation to' to)
       /\ runs delivery fab rk (dst f) (src f) (queue_of fab (from_host fab h) (tags f)) outs k' to')
    /\ (delivery = true -> forall w, wanted fab h (dst f) = Some w -> Permutation w to).

Section Sent.
  Variables (delivery : bool) (fab : fabric) (rk : ranking) (rules : N -> list held)
    (tests : N -> tested) (fuel : nat) (everybody : ranges).
  Hypotheses (Rules : forall c, rules c = tables_of fab c)
    (Everybody : Permutation (members everybody) (hosts fab)) (Once : NoDup (hosts fab))
    (Small : forall h, In h (hosts fab) -> mac fab h <= address_bits).

  Definition sent_own (h d : N) : Prop := followed delivery fab rk h (Frame d (mac fab h) []).

  Lemma owners_of_others h d l : (mac fab h =? d) = false ->
    owners_of fab d (filter (fun r => negb (r =? h)) l) = owners_of fab d l.
  Proof.
    intros Own. unfold owners_of. induction l as [|r l IH]; [easy|]. cbn [filter].
    destruct (r =? h) eqn:Sender; cbn [negb filter].
    - apply N.eqb_eq in Sender. subst r. unfold is_host at 2. now rewrite Own.
    - now rewrite IH.
  Qed.

  Lemma others_only h l : ~ In h l -> filter (fun r => negb (r =? h)) l = l.
  Proof.
    induction l as [|r l IH]; [easy|]. cbn [In filter]. intros Absent.
    destruct (r =? h) eqn:Same; [apply N.eqb_eq in Same; tauto|]. cbn [negb]. f_equal. tauto.
  Qed.

  Lemma receives_sound dc owners h o d to :
    in_class dc d = true -> owners_of fab d owners = owners_of fab d (hosts fab) ->
    receives fab everybody dc owners h o = true -> describes delivery fab o d to ->
    delivery = true -> forall w, wanted fab h d = Some w -> Permutation w to.
  Proof.
    intros Member Owners Receives Describes Delivery w Wanted.
    unfold receives in Receives. unfold wanted in Wanted.
    destruct (d =? broadcast fab) eqn:Broadcast.
    - apply N.eqb_eq in Broadcast. subst d. rewrite Member in Receives. injection Wanted as <-.
      destruct owners; [|discriminate]. destruct o as [l|]; [|discriminate].
      specialize (Describes Delivery). apply patterns_eqb_eq in Receives.
      assert (All : Permutation (h :: to) (hosts fab)).
      { rewrite <- Everybody, <- Receives, members_together, members_just, <- Describes. easy. }
      rewrite <- (permutation_filter _ _ _ All). cbn [filter]. rewrite N.eqb_refl. cbn [negb].
      apply Permutation_sym in All. apply (Permutation_NoDup All), NoDup_cons_iff in Once as (Absent & _).
      now rewrite others_only.
    - destruct (mac fab h =? d) eqn:Own; [discriminate|].
      fold (owners_of fab d (hosts fab)) in Wanted.
      assert (Owned : owners_of fab d (hosts fab) <> [] /\ w = owners_of fab d (hosts fab)).
      { destruct (owners_of fab d (hosts fab)); [discriminate|]. now injection Wanted as <-. }
      destruct Owned as (Owned & ->). clear Wanted.
      destruct (in_class dc (broadcast fab)).
      { destruct owners; [|discriminate]. cbn in Owners. now rewrite <- Owners in Owned. }
      destruct o as [l|]; [|exact (Describes Delivery)].
      apply (to_owner_describes delivery fab _ (Exactly l) d to) in Receives;
        [now destruct Receives| |easy|easy].
      now rewrite owners_of_others.
  Qed.

  Lemma from_one_sound h fuel' : In h (hosts fab) -> forall dc (addresses : N -> Prop) owners m m',
    (forall d, addresses d -> within dc d) -> has_owners fab addresses owners ->
    memo_sound delivery fab rk addresses dc m ->
    from_one delivery fab rk rules tests fuel fuel' everybody h dc owners m = Some m' ->
    memo_sound delivery fab rk addresses dc m' /\ forall d, addresses d -> sent_own h d.
  Proof.
    intros Host. set (own := exactly (mac fab h)).
    assert (Sent : forall dc (addresses : N -> Prop) owners m m1 bits o choices,
      (forall d, addresses d -> within dc d) -> has_owners fab addresses owners ->
      memo_sound delivery fab rk addresses dc m ->
      arrive fab rules (from_host fab h) dc own Bottom = Known choices ->
      follow_each delivery false fab rk (follow delivery false fab rk rules tests fuel dc owners (mac fab h))
        (rank_on fab rk (from_host fab h) Bottom) dc owners m choices = Some (m1, (bits, o)) ->
      negb delivery || receives fab everybody dc owners h o = true ->
      memo_sound delivery fab rk addresses dc m1 /\ forall d, addresses d -> sent_own h d).
    { intros dc addresses owners m m1 bits o choices Class Owners Sound Arrive Follow Receives.
      assert (Search := follow_sound delivery false fab rk rules tests Rules fuel dc
                          addresses owners (mac fab h) Class Owners).
      destruct (follow_each_sound _ _ _ _ _ _ _ _ _ _ Search Class Owners _ _ _ _ Sound Follow)
        as (Sound1 & Some_choice & End).
      split; [easy|]. intros d Address.
      destruct (End d (mac fab h) 0 [] Address (fits_self _ _) eq_refl) as (k & to & Describes & Runs).
      destruct (Class d Address) as (Member & _).
      destruct (arrive_sound dc own d (mac fab h) 0 [] Member (fits_self _ _) _ _ _ _ _ (Rules _) Arrive)
        as (Defined & Possible & Only).
      rewrite (source_own (mac fab h) (Small h Host)) in *.
      split; [exact Defined|]. split.
      - destruct choices as [|outs choices]; [easy|]. eexists. apply Possible. now left.
      - exists k, to. split.
        { intros outs Arrives. destruct (Only outs Arrives) as (seen & Choice & ->).
          destruct (Runs seen Choice) as (k' & to' & Fewer & Same & Runs'). exists k', to'.
          split; [easy|]. split; [easy|]. apply Runs'. now left. }
        intros Delivery. rewrite Delivery in Receives.
        exact (receives_sound dc owners h o d to Member (Owners d Address) Receives Describes Delivery). }
    induction fuel' as [|fuel' IH]; intros dc addresses owners m m' Class Owners Sound;
      cbn [from_one]; cbv zeta; fold own;
      destruct (arrive fab rules (from_host fab h) dc own Bottom) as [choices|p|] eqn:Arrive;
      try discriminate.
    1, 2: destruct (follow_each delivery false fab rk _ _ _ _ m choices) as [(m1, (bits, o))|] eqn:Follow;
      [|discriminate];
      destruct (negb delivery || receives fab everybody dc owners h o) eqn:Receives; [|discriminate];
      intros Result; injection Result as <-; now apply (Sent dc addresses owners m m1 bits o choices).
    set (bit := dividing _ _ _).
    specialize (parts_of_sound delivery fab rk addresses dc m owners bit) as Part.
    destruct (parts_of fab m dc owners bit) as (zero, one) eqn:Parts.
    destruct (Part false Sound Owners) as (Zero_owners & Zero_sound).
    destruct (Part true Sound Owners) as (One_owners & One_sound).
    clear Part. cbn [chosen fst snd] in Zero_owners, Zero_sound, One_owners, One_sound.
    destruct (from_one _ _ _ _ _ _ fuel' _ _ (half false dc bit) _ _) as [m1|] eqn:Zero; [|discriminate].
    destruct (from_one _ _ _ _ _ _ fuel' _ _ (half true dc bit) _ _) as [m2|] eqn:One; [|discriminate].
    intros Result. injection Result as <-.
    assert (In_part : forall value d, inside value dc bit addresses d -> within (half value dc bit) d).
    { intros value d (Address & Member). split; [easy|]. now apply Class. }
    destruct (IH _ _ _ _ _ (In_part false) Zero_owners Zero_sound Zero) as (Zero_sound1 & Zero_followed).
    destruct (IH _ _ _ _ _ (In_part true) One_owners One_sound One) as (One_sound1 & One_followed).
    split.
    - apply memo_sound_parts; [exact Sound|]. intros [|]; now split.
    - intros d Address. destruct (halves_contain dc bit d) as ([|] & Member); [now apply Class| |].
      + now apply One_followed.
      + now apply Zero_followed.
  Qed.

  Lemma from_hosts_sound dc (addresses : N -> Prop) owners :
    (forall d, addresses d -> within dc d) -> has_owners fab addresses owners ->
    forall senders m, memo_sound delivery fab rk addresses dc m ->
    from_hosts delivery fab rk rules tests fuel everybody dc owners m senders = true ->
    incl senders (hosts fab) -> forall h, In h senders -> forall d, addresses d -> sent_own h d.
  Proof.
    intros Class Owners. induction senders as [|h senders IH]; [easy|].
    intros m Sound. cbn [from_hosts].
    destruct (from_one _ _ _ _ _ _ _ _ h dc owners _) as [m1|] eqn:One; [|discriminate].
    intros Rest Hosts. assert (Host : In h (hosts fab)) by (apply Hosts; now left).
    destruct (from_one_sound h _ Host _ _ _ _ _ Class Owners Sound One) as (Sound1 & Followed).
    intros h' [<-|Member]; [exact Followed|]. apply (IH m1); auto.
    intros h'' Later. apply Hosts. now right.
  Qed.

  Lemma check_class_sound dc :
    check_class delivery fab rk rules tests fuel everybody dc = true ->
    forall d h, within dc d -> In h (hosts fab) -> sent_own h d.
  Proof.
    unfold check_class. intros Check d h Within Host.
    assert (Owners : has_owners fab (within dc) (owners_in fab dc (hosts fab))).
    { intros d' (Member & Address).
      now apply (has_owners_in fab (fun d => d <= N.ones 48) dc (hosts fab)). }
    eapply from_hosts_sound with (addresses := within dc) in Check; eauto; [|apply incl_refl].
    now apply memo_sound_empty.
  Qed.
End Sent.

(** * Whatever hosts send *)

Lemma count_or_miss t port meta d s ts :
  missed t port meta d s ts \/ exists r, may_count t r port meta d s ts.
Proof.
  induction t as [|l t IH]; [now left|].
  destruct (find (fun r => matches r port meta d s ts) l) as [r|] eqn:Hit.
  - apply find_some in Hit as (Member & Matches). right. exists r. now exists [], l, t.
  - assert (Nothing : forall r, In r l -> certain r port meta d s ts = false).
    { intros r Member. unfold certain. rewrite (find_none _ _ Hit r Member). apply andb_false_r. }
    destruct IH as [Missed|(r & higher & level & lower & -> & Above & Hits)].
    + left. intros l' r [<-|Lower] Member; [now apply Nothing|now apply (Missed l')].
    + right. exists r, (l :: higher), level, lower. split; [reflexivity|]. split; [|easy].
      intros l' r' [<-|Higher] Member; [now apply Nothing|now apply (Above l')].
Qed.

Lemma drops_spec r : drops r = true -> r_acts r = [] /\ r_goto r = None.
Proof. unfold drops. destruct (r_acts r), (r_goto r); easy. Qed.

(** A switch of which every rule drops that may count in the first table. *)
Lemma handled_drops sw port d s ts :
  (forall r, may_count (nth 0 (tables sw) []) r port 0 d s ts -> drops r = true) ->
  handled sw port d s 0 0 ts (Some [])
  /\ forall result, handled sw port d s 0 0 ts result -> result = Some [].
Proof.
  intros Drops. split.
  - destruct (count_or_miss (nth 0 (tables sw) []) port 0 d s ts) as [Missed|(r & Counts)].
    + now apply handled_miss.
    + destruct (drops_spec r (Drops r Counts)) as (Nothing & Last).
      apply handled_end with r ts; [easy| |easy]. rewrite Nothing. now left.
  - intros result Handled. inversion Handled; subst; [reflexivity| | | |];
      match goal with Counts : may_count _ ?r _ _ _ _ _ |- _ =>
        destruct (drops_spec r (Drops r Counts)) as (Nothing & Last) end; try congruence;
      match goal with Effect : In _ (apply _ _ _ _ _) |- _ =>
        rewrite Nothing in Effect; destruct Effect as [Same|[]] end; [|discriminate].
    now injection Same as <- <-.
Qed.

Section Any_sent.
  Variables (fab : fabric) (rk : ranking) (rules : N -> list held) (tests : N -> tested) (fuel : nat).
  Hypothesis Rules : forall c, rules c = tables_of fab c.

  Lemma passing_drops xc x p0 rest d port ts : fits xc x = true -> forall t,
    passing (rules_of_port port t) (vids ts xc) (pcps ts) xc = None ->
    forall r, may_count t r port 0 d (source x) (real x p0 rest ts) -> drops r = true.
  Proof.
    intros Cube. assert (All : in_class ((0, 0), []) d = true).
    { unfold in_class. cbn [fst snd forallb]. now rewrite fits_any. }
    induction t as [|l t IH]; intros Passing r (higher & level & lower & Split & Above & Member & Matches).
    { now destruct higher. }
    cbn [rules_of_port map passing] in Passing. fold (rules_of_port port t) in Passing.
    destruct (find _ _) as [passes|] eqn:None_passes in Passing; [discriminate|].
    assert (Of_port : forall r, In r l -> matches r port 0 d (source x) (real x p0 rest ts) = true ->
      In r (filter (fun r => fits (r_port r) port) l)).
    { intros r' In_level Hit. apply filter_In. split; [easy|]. unfold matches in Hit.
      now destruct (fits (r_port r') port). }
    destruct higher as [|l' higher]; injection Split as <- ->.
    - assert (Passes := find_none _ _ None_passes r (Of_port r Member Matches)). cbv beta in Passes.
      destruct (matches_class r _ _ _ _ _) eqn:Fit in Passes;
        [now apply negb_false_iff in Passes| |now apply negb_false_iff in Passes].
      rewrite (matches_no _ xc d x p0 rest All Cube r port 0 ts Fit) in Matches. discriminate.
    - destruct (existsb _ _) eqn:Some_hit in Passing.
      + apply existsb_exists in Some_hit as (r1 & Member1 & Hit). apply filter_In in Member1 as (Member1 & Port).
        destruct (matches_class r1 _ _ _ _ _) eqn:Fit in Hit; try discriminate.
        assert (Matches1 := matches_yes _ xc d x p0 rest All Cube r1 port 0 ts Port Fit).
        assert (Sure := Above l r1 (or_introl eq_refl) Member1). unfold certain in Sure.
        rewrite Hit, Matches1 in Sure. discriminate.
      + apply IH; [exact Passing|]. exists higher, level, lower. split; [reflexivity|]. split; [|easy].
        intros l' r' Higher In_level. apply (Above l'); [now right|easy].
  Qed.

  (** The frame comes no further than to the first switch. *)
  Definition dropped (c x : N) (ts : view) : Prop :=
    forall d p0 rest, run false fab rk d (source x) c (real x p0 rest ts) 1 [].

  Lemma first_passing_drops c ts xc x : rules c <> [] -> fits xc x = true ->
    first_passing (rules c) (vids ts xc) (pcps ts) xc = None -> dropped c x ts.
  Proof.
    intros Some_version Cube Passing d p0 rest.
    assert (Drop : forall sw, In sw (versions fab (fst (entering fab c))) ->
      handled sw (snd (entering fab c)) d (source x) 0 0 (real x p0 rest ts) (Some [])
      /\ forall result, handled sw (snd (entering fab c)) d (source x) 0 0 (real x p0 rest ts) result ->
         result = Some []).
    { intros sw Held. apply handled_drops. apply passing_drops with xc; [easy|].
      rewrite Rules in Passing. unfold tables_of in Passing.
      destruct (entering fab c) as (at_switch, port). cbn [fst snd] in *.
      induction (versions fab at_switch) as [|sw' l IH]; [easy|]. cbn [map first_passing] in Passing.
      destruct (passing _ _ _ _) as [r|] eqn:One in Passing; [discriminate|].
      destruct Held as [->|Held]; [|now apply IH].
      destruct (tables sw) as [|t tables]; [reflexivity|exact One]. }
    constructor.
    - intros (sw & Held & Undefined). destruct (Drop sw Held) as (_ & Only).
      now apply Only in Undefined.
    - rewrite Rules in Some_version. unfold tables_of in Some_version.
      destruct (versions fab (fst (entering fab c))) as [|sw l] eqn:Versions.
      { destruct (entering fab c). cbn [fst] in Versions. now rewrite Versions in Some_version. }
      destruct (Drop sw (or_introl eq_refl)) as (Handled & _).
      exists [], sw, []. split; [|reflexivity]. split; [rewrite Versions; now left|easy].
    - intros outs (sw & copies & (Held & Handled) & ->). destruct (Drop sw Held) as (_ & Only).
      apply Only in Handled. injection Handled as ->. exists 1, []. split; [lia|]. split; [easy|].
      constructor.
  Qed.

  Lemma side_contains xc x bits : fits xc x = true -> exists one, fits (side one xc bits) x = true.
  Proof.
    intros Cube. destruct (halves_contain (xc, []) (N.log2 bits) x) as (one & Half).
    - unfold in_class. cbn [fst snd forallb]. now rewrite Cube.
    - exists one. unfold in_class in Half. now apply andb_true_iff in Half.
  Qed.

  Lemma admitted_sound c ts x : rules c <> [] -> forall fuel' xc, fits xc x = true ->
    (exists xc', In xc' (admitted rules fuel' c ts xc) /\ fits xc' x = true) \/ dropped c x ts.
  Proof.
    intros Some_version. induction fuel' as [|fuel' IH]; intros xc Cube; cbn [admitted];
      destruct (first_passing _ _ _ _) as [r|] eqn:Passing.
    2, 4: right; now apply first_passing_drops with xc.
    { left. exists xc. split; [now left|easy]. }
    cbv zeta. set (more := N.ldiff _ _). destruct (more =? 0).
    { left. exists xc. split; [now left|easy]. }
    destruct (side_contains xc x more Cube) as (one & Side).
    destruct (IH _ Side) as [(xc' & Member & Cube')|Dropped]; [left|now right].
    exists xc'. split; [|easy]. apply in_or_app. destruct one; [now right|now left].
  Qed.

  (** What is known of frames that a host has sent. *)
  Definition ends_somehow (d x p0 : N) (rest : stack) (c : N) (ts : view) : Prop :=
    exists k to, run false fab rk d (source x) c (real x p0 rest ts) k to.

  Definition cube_ends (addresses : N -> Prop) (c : N) (ts : view) (xc : pattern) : Prop :=
    forall d x p0 rest, addresses d -> fits xc x = true -> p0 < 8 -> ends_somehow d x p0 rest c ts.

  Section Class_of_destinations.
    Variables (dc : class) (addresses : N -> Prop) (owners : list N).
    Hypotheses (Class : forall d, addresses d -> within dc d) (Owners : has_owners fab addresses owners).
    Notation sound_memo := (memo_sound false fab rk addresses dc).

    Lemma from_cube_sound c ts fuel' : forall xc m m', sound_memo m ->
      from_cube fab rk rules tests fuel fuel' dc owners c ts xc m = Some m' ->
      sound_memo m' /\ cube_ends addresses c ts xc.
    Proof.
      assert (Whole : forall xc m m1 bits o, sound_memo m ->
        follow false true fab rk rules tests fuel dc owners (fst xc) m c ts = Some (m1, (bits, o)) ->
        sound_memo m1 /\ (N.ldiff bits (snd xc) = 0 -> cube_ends addresses c ts xc)).
      { intros xc m m1 bits o Sound Follow.
        destruct (follow_sound false true fab rk rules tests Rules fuel dc addresses owners (fst xc)
                    Class Owners _ _ _ _ _ Sound Follow) as (Sound1 & Ends).
        split; [easy|]. intros Told d x p0 rest Address Cube Small.
        destruct (Ends d x p0 rest Address) as (k & to & Run & _); [|easy|now exists k, to].
        cbn [fst]. rewrite fits_spec in Cube. apply fits_spec. cbn [fst snd]. intros i Bit.
        apply Cube. apply (f_equal (fun n => N.testbit n i)) in Told.
        rewrite N.ldiff_spec, Bit, N.bits_0 in Told. now apply negb_false_iff in Told. }
      induction fuel' as [|fuel' IH]; intros xc m m' Sound; cbn [from_cube];
        destruct (follow _ _ _ _ _ _ _ _ _ _ _ _ _) as [(m1, (bits, o))|] eqn:Follow; try discriminate;
        destruct (Whole _ _ _ _ _ Sound Follow) as (Sound1 & Ends); cbv zeta;
        destruct (N.ldiff bits (snd xc) =? 0) eqn:Told; try discriminate;
        try (apply N.eqb_eq in Told; intros Result; injection Result as <-; split; [easy|now apply Ends]).
      destruct (from_cube _ _ _ _ _ _ _ _ _ _ (side false _ _) _) as [m2|] eqn:Zero; [|discriminate].
      intros One. apply IH in Zero as (Sound2 & Zero_ends); [|easy]. apply IH in One as (Sound3 & One_ends); [|easy].
      split; [easy|]. intros d x p0 rest Address Cube Small.
      destruct (side_contains xc x (N.ldiff bits (snd xc)) Cube) as ([|] & Side).
      - now apply One_ends.
      - now apply Zero_ends.
    Qed.

    Lemma from_views_sound c xc l : forall m m', sound_memo m ->
      from_views fab rk rules tests fuel dc owners c xc l m = Some m' ->
      sound_memo m' /\ forall ts, In ts l -> cube_ends addresses c ts xc.
    Proof.
      induction l as [|ts l IH]; intros m m' Sound; cbn [from_views].
      { intros Result. injection Result as <-. now split. }
      destruct (from_cube _ _ _ _ _ _ _ _ _ _ _ _) as [m1|] eqn:One; [|discriminate].
      intros Rest. apply from_cube_sound in One as (Sound1 & Ends); [|easy].
      apply IH in Rest as (Sound2 & Others); [|easy]. split; [easy|].
      intros ts' [<-|Member]; [easy|now apply Others].
    Qed.

    Lemma from_start_sound c ts xc m m' : sound_memo m ->
      from_start fab rk rules tests fuel dc owners (c, ts, xc) m = Some m' ->
      sound_memo m' /\ cube_ends addresses c ts xc.
    Proof.
      intros Sound. unfold from_start.
      destruct (from_cube _ _ _ _ _ _ _ _ _ _ _ _) as [m1|] eqn:Whole.
      { intros Result. injection Result as <-. now apply from_cube_sound in Whole. }
      intros Views. apply from_views_sound in Views as (Sound1 & Ends); [|easy]. split; [easy|].
      intros d x p0 rest Address Cube Small.
      destruct ts as [| |v [p|] below]; try (apply Ends; [now left|easy|easy|easy]).
      assert (One : In (Tag v (Some p0) below) (with_each_priority (Tag v None below))).
      { cbn [with_each_priority]. apply (in_map (fun p => Tag v (Some p) below)). now apply in_priorities. }
      exact (Ends _ One d x p0 rest Address Cube Small).
    Qed.

    Lemma from_starts_sound l : forall m, sound_memo m ->
      from_starts fab rk rules tests fuel dc owners l m = true ->
      forall c ts xc, In (c, ts, xc) l -> cube_ends addresses c ts xc.
    Proof.
      induction l as [|((c, ts), xc) l IH]; [easy|]. intros m Sound. cbn [from_starts].
      destruct (from_start _ _ _ _ _ _ _ _ _) as [m1|] eqn:One; [|discriminate].
      intros Rest. apply from_start_sound in One as (Sound1 & Ends); [|easy].
      intros c' ts' xc' [Same|Member]; [now injection Same as <- <- <-|now apply (IH m1)].
    Qed.
  End Class_of_destinations.

  Lemma check_any_class_sound l dc : check_any_class fab rk rules tests fuel l dc = true ->
    forall c ts xc, In (c, ts, xc) l -> cube_ends (within dc) c ts xc.
  Proof.
    unfold check_any_class. intros Check. eapply from_starts_sound; [| |now apply memo_sound_empty|exact Check].
    - easy.
    - intros d (Member & Address). now apply (has_owners_in fab (fun d => d <= N.ones 48) dc (hosts fab)).
  Qed.

  (** A frame of a host as a choice and a view of its tags. *)
  Lemma chosen_tag s v : s <= address_bits -> 4096 <= v < 8192 ->
    exists x, source x = s /\ vlan_of x = v /\ N.testbit x 60 = true
      /\ forall i, i < 48 -> N.testbit x i = N.testbit s i.
  Proof.
    intros Source (Least & Most). exists (N.lor s (N.shiftl v 48)).
    assert (High : forall i, 48 <= i -> N.testbit s i = false).
    { intros i Above. rewrite <- (source_own s Source), source_bit.
      destruct (N.ltb_spec i 48); [lia|apply andb_false_r]. }
    assert (Low : forall i, i < 48 -> N.testbit (N.lor s (N.shiftl v 48)) i = N.testbit s i).
    { intros i Below. rewrite N.lor_spec, N.shiftl_spec_low by easy. apply orb_false_r. }
    assert (Vlan : vlan_of (N.lor s (N.shiftl v 48)) = v).
    { apply N.bits_inj. intros i. unfold vlan_of. rewrite N.shiftr_spec by apply N.le_0_l.
      rewrite N.lor_spec, High by lia. cbn [orb].
      rewrite N.shiftl_spec_high by lia. f_equal. lia. }
    split; [|split; [exact Vlan|split; [|exact Low]]].
    - apply N.bits_inj. intros i. rewrite source_bit. destruct (N.ltb_spec i 48).
      + rewrite Low by easy. apply andb_true_r.
      + rewrite High by easy. apply andb_false_r.
    - rewrite N.lor_spec, High by easy. cbn [orb]. rewrite N.shiftl_spec_high by easy.
      change (60 - 48) with 12. rewrite N.testbit_true. change (2 ^ 12) with 4096.
      assert (One : v / 4096 = 1) by (symmetry; apply N.div_unique with (v - 4096); lia).
      now rewrite One.
  Qed.

  Lemma frame_seen forge tag h f : mac fab h <= address_bits -> any_frames fab forge tag h f ->
    exists ts x p0 rest, In ts (first_views tag) /\ fits (first_cube forge fab h ts) x = true /\ p0 < 8
      /\ source x = src f /\ real x p0 rest ts = tags f.
  Proof.
    intros Mac (_ & Source & Tags). destruct f as (d, s, all). cbn [src tags dst] in *.
    assert (Small : s <= address_bits).
    { destruct forge; [|now subst]. unfold address_bits. change (N.ones 48) with (N.pred (2 ^ 48)).
      now apply N.lt_le_pred. }
    assert (Own : forall i, N.testbit (snd (if forge then (0, 0) else exactly (mac fab h))) i = true ->
      i < 48 /\ N.testbit s i = N.testbit (fst (if forge then (0, 0) else exactly (mac fab h))) i).
    { intros i Mask. destruct forge; [now rewrite N.bits_0 in Mask|]. subst s. cbn [exactly fst snd] in *.
      split; [|easy]. destruct (N.lt_ge_cases i 48) as [|Above]; [easy|].
      unfold address_bits in Mask. now rewrite N.ones_spec_high in Mask. }
    destruct all as [|(v, p) rest].
    - exists Bottom, s, 0, []. split; [now left|]. split; [|split; [easy|split; [now apply source_own|easy]]].
      apply fits_spec. unfold first_cube. cbn [has_chosen_vlan]. intros i Mask. now apply Own.
    - destruct tag; [|discriminate]. inversion Tags as [|? ? (Vlan & Priority) _]. subst. cbn [fst snd] in *.
      destruct (chosen_tag s v Small Vlan) as (x & Of_x & Vlan_of_x & Marked & Low).
      exists (Tag None None More), x, p, rest.
      split; [right; now left|]. split; [|split; [easy|split; [easy|]]].
      + apply fits_spec. unfold first_cube. cbn [has_chosen_vlan fst snd]. intros i Mask.
        rewrite N.setbit_eqb in *. destruct (60 =? i) eqn:Is_mark.
        * apply N.eqb_eq in Is_mark. now subst i.
        * cbn [orb] in *. destruct (Own i Mask) as (Below & Same). now rewrite Low.
      + cbn [real]. now rewrite Vlan_of_x.
  Qed.

  Lemma run_followed h f k to :
    run false fab rk (dst f) (src f) (from_host fab h) (tags f) k to -> followed false fab rk h f.
  Proof.
    intros Run. inversion Run as [c ts most receivers Defined Some_outs Runs]. subst.
    split; [easy|]. split; [easy|]. exists k, to. now split.
  Qed.
End Any_sent.

(** * The network *)

Section Network.
  Variables (delivery : bool) (fab : fabric) (rk : ranking) (room : N -> nat) (sends : sending).
  Hypothesis (K : forall h f, In h (hosts fab) -> sends h f -> followed delivery fab rk h f).

  (** Of an item: the moves until all of it has arrived, and who receives it. *)
  Definition fate := (N * list N)%type.
  Definition fate_of (i : item) (f : fate) : Prop :=
    runs delivery fab rk (i_dst i) (i_src i) (at_queue i) (pending i) (fst f) (snd f).

  Definition receipts (i : item) (f : fate) : list receipt :=
    map (fun h => (h, (i_dst i, i_src i))) (snd f).

  Definition outstanding (l : list item) (fates : list fate) : list receipt :=
    concat (map (fun p => receipts (fst p) (snd p)) (combine l fates)).

  Fixpoint total (fates : list fate) : N :=
    match fates with [] => 0 | f :: more => fst f + total more end.

  Definition promised (st : list receipt) (rec : list (list N)) : list receipt :=
    concat (map (fun p => map (fun h => (h, snd (fst p))) (snd p)) (combine st rec)).

  Arguments outstanding : simpl never.
  Arguments promised : simpl never.
  Arguments receipts : simpl never.

  Definition delivering (s : state) (fates : list fate) (rec : list (list N)) : Prop :=
    Forall2 (fun r l => forall w, wanted fab (fst r) (fst (snd r)) = Some w -> Permutation w l)
            (sent s) rec
    /\ Permutation (log s ++ outstanding (items s) fates) (promised (sent s) rec).

  Definition invariant (s : state) (n : N) : Prop :=
    exists fates rec, Forall2 fate_of (items s) fates /\ total fates = n
      /\ (delivery = true -> delivering s fates rec).

  Lemma total_app a b : total (a ++ b) = total a + total b.
  Proof. induction a as [|x a IH]; cbn; [easy|]. rewrite IH. lia. Qed.

  Lemma combine_app A B (l1 : list A) : forall (l1' : list B) l2 l2',
    length l1 = length l1' -> combine (l1 ++ l2) (l1' ++ l2') = combine l1 l1' ++ combine l2 l2'.
  Proof. induction l1; intros [|]; cbn; intros; try easy. f_equal. apply IHl1. congruence. Qed.

  Lemma same_length A B (P : A -> B -> Prop) l1 l2 : Forall2 P l1 l2 -> length l1 = length l2.
  Proof. induction 1; cbn; congruence. Qed.

  Lemma outstanding_app l1 f1 l2 f2 : Forall2 fate_of l1 f1 -> outstanding (l1 ++ l2) (f1 ++ f2) = outstanding l1 f1 ++ outstanding l2 f2.
  Proof.
    intros H. unfold outstanding. rewrite combine_app; [|now apply same_length in H].
    now rewrite map_app, concat_app.
  Qed.

  Lemma outstanding_cons i l f fs : outstanding (i :: l) (f :: fs) = receipts i f ++ outstanding l fs.
  Proof. reflexivity. Qed.

  Lemma Forall2_middle (l1 : list item) i l2 fates : Forall2 fate_of (l1 ++ i :: l2) fates ->
    exists f1 f f2, fates = f1 ++ f :: f2 /\ Forall2 fate_of l1 f1 /\ fate_of i f
      /\ Forall2 fate_of l2 f2.
  Proof.
    intros H. apply Forall2_app_inv_l in H as (f1 & f2 & F1 & F2 & ->).
    inversion F2; subst. eauto 8.
  Qed.

  Lemma inject_keeps s s' n : invariant s n -> inject fab sends s s' ->
    exists n', invariant s' n'.
  Proof.
    intros (fates & rec & F & T & Delivering) I.
    destruct I as [l lg st h f outs Host Sends Arrives]; subst; cbn in *.
    destruct (K h f Host Sends) as (_ & _ & most & receivers & Runs & Wanted).
    destruct (Runs _ Arrives) as (k & to & _ & Same & Q).
    exists (total fates + k), (fates ++ [(k, to)]), (to :: rec). cbn. split; [|split].
    - apply Forall2_app; [easy|]. constructor; [|constructor]. exact Q.
    - rewrite total_app. cbn. lia.
    - intros Delivery. destruct (Delivering Delivery) as (R & P). cbn in R, P. split.
      + constructor; [|easy]. cbn. intros w Some_wanted. rewrite (Same Delivery). now apply Wanted.
      + cbn [log items sent]. rewrite outstanding_app by easy.
        unfold promised. cbn [combine map concat].
        fold (promised st rec). rewrite outstanding_cons. unfold outstanding at 2.
        cbn [combine map concat].
        rewrite app_nil_r. unfold receipts at 1. cbn [i_dst i_src snd fst].
        rewrite app_assoc. rewrite Permutation_app_comm. now apply Permutation_app_head.
  Qed.

  (** A copy that may be lost, and that counts for nobody with [delivery]. *)
  Lemma runs_split_loss d s q t ts (p1 p2 : list out) k to : can_be_lost fab t = true ->
    runs delivery fab rk d s q (p1 ++ (t, ts) :: p2) k to ->
    exists k' to', runs delivery fab rk d s q (p1 ++ p2) k' to' /\ k' < k
      /\ (delivery = true -> to' = to).
  Proof.
    intros Lost Runs. destruct t as [h|c|]; [discriminate| |].
    - apply runs_split_channel in Runs as (k' & to' & kc & tc & Runs & _ & _ & _ & Reliable & -> & _).
      exists k', to'. split; [easy|]. split; [lia|]. intros Delivery.
      cbn in Lost. rewrite (Reliable Delivery) in Lost. discriminate.
    - apply runs_split_lost in Runs as (k' & Runs & ->). exists k', to. split; [easy|].
      split; [lia|easy].
  Qed.

  Lemma move_keeps s s' n : invariant s n -> move fab room any_item s s' ->
    exists n', invariant s' n' /\ n' < n.
  Proof.
    intros (fates & rec & F & T & Delivering) M.
    destruct M as [l1 i l2 lg st _ Pending|l1 i l2 lg st p1 p2 t ts _ Pending Lost
                  |l1 i l2 lg st p1 p2 ts h _ Pending
                  |l1 i l2 lg st p1 p2 ts c outs _ Pending _ Arrives]; subst; cbn in *;
      apply Forall2_middle in F as (f1 & (k, to) & f2 & -> & F1 & Fi & F2);
      unfold fate_of in Fi; cbn in Fi; rewrite total_app; cbn [total fst];
      unfold delivering in Delivering; cbn [log items sent] in Delivering;
      rewrite outstanding_app in Delivering by easy; rewrite outstanding_cons in Delivering.
    - rewrite Pending in Fi. apply runs_none in Fi as (-> & ->).
      exists (total f1 + total f2). split; [|lia].
      exists (f1 ++ f2), rec. cbn. split; [now apply Forall2_app|]. split; [now rewrite total_app|].
      intros Delivery. destruct (Delivering Delivery) as (R & P). split; [easy|]. cbn.
      rewrite outstanding_app by easy. exact P.
    - rewrite Pending in Fi. apply (runs_split_loss _ _ _ _ _ _ _ _ _ Lost) in Fi
        as (k' & to' & Fi & Fewer & Same).
      exists (total f1 + (k' + total f2)). split; [|lia].
      exists (f1 ++ (k', to') :: f2), rec. cbn. split; [|split].
      + apply Forall2_app; [easy|]. now constructor.
      + now rewrite total_app.
      + intros Delivery. destruct (Delivering Delivery) as (R & P). rewrite (Same Delivery).
        split; [easy|]. cbn. rewrite outstanding_app by easy. exact P.
    - rewrite Pending in Fi. apply runs_split_host in Fi as (k' & to' & Fi & -> & Q).
      exists (total f1 + (k' + total f2)). split; [|lia].
      exists (f1 ++ (k', to') :: f2), rec. cbn. split; [|split].
      + apply Forall2_app; [easy|]. now constructor.
      + now rewrite total_app.
      + intros Delivery. destruct (Delivering Delivery) as (R & P). split; [easy|].
        cbn [log items sent]. rewrite outstanding_app by easy. rewrite outstanding_cons. rewrite <- P.
        unfold receipts. cbn [i_dst i_src snd fst].
        rewrite (Permutation_map (fun h0 => (h0, (i_dst i, i_src i))) Q).
        destruct ts; cbn [untagged map app]; [|reflexivity].
        rewrite app_assoc, (app_assoc lg). apply Permutation_middle.
    - rewrite Pending in Fi.
      apply runs_split_channel in Fi as (k' & to' & kc & tc & Fi & C & _ & _ & _ & -> & Q).
      destruct C as [c ts most receivers _ _ Runs].
      destruct (Runs _ Arrives) as (kc & tc & Fewer & Same & Rest).
      exists (total f1 + (k' + (total f2 + kc))). split; [|lia].
      exists (f1 ++ (k', to') :: f2 ++ [(kc, tc)]), rec. cbn. split; [|split].
      + apply Forall2_app; [easy|]. constructor; [easy|]. apply Forall2_app; [easy|].
        constructor; [|constructor]. exact Rest.
      + rewrite total_app. cbn. rewrite total_app. cbn. lia.
      + intros Delivery. destruct (Delivering Delivery) as (R & P). split; [easy|].
        rewrite <- (Same Delivery) in Q. cbn [log items sent].
        rewrite outstanding_app by easy. rewrite outstanding_cons. rewrite outstanding_app by easy.
        rewrite <- P. unfold receipts. cbn [i_dst i_src snd fst].
        rewrite (Permutation_map (fun h0 => (h0, (i_dst i, i_src i))) Q).
        rewrite map_app. unfold outstanding at 3. cbn [combine map concat]. rewrite app_nil_r.
        unfold receipts. cbn [i_dst i_src snd fst].
        apply Permutation_app_head, Permutation_app_head.
        rewrite app_assoc, Permutation_app_comm, app_assoc. reflexivity.
  Qed.

  Lemma reachable_invariant s : reachable fab room sends s -> exists n, invariant s n.
  Proof.
    induction 1 as [|s s' _ (n & IH) I|s s' _ (n & IH) M].
    - exists 0, [], []. split; [constructor|]. split; [reflexivity|]. intros _. split; constructor.
    - now apply inject_keeps with (1 := IH).
    - destruct (move_keeps _ _ _ IH M) as (n' & H & _). now exists n'.
  Qed.

  Lemma waits_upwards s n i c ts : invariant s n -> In i (items s) ->
    In (ToChannel c, ts) (pending i) ->
    rank rk (at_queue i) < rank rk (queue_of fab c ts) <= bound rk.
  Proof.
    intros (fates & rec & F & _) I J.
    apply in_split in I as (l1 & l2 & E). rewrite E in F.
    apply Forall2_middle in F as (f1 & (k, to) & f2 & -> & F1 & Fi & F2).
    unfold fate_of in Fi. apply in_split in J as (p1 & p2 & E2). rewrite E2 in Fi.
    apply runs_split_channel in Fi as (_ & _ & _ & _ & _ & _ & L & B & _). easy.
  Qed.

  Lemma no_deadlock s stuck : reachable fab room sends s -> ~ deadlock fab s stuck.
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

  Lemma progress s : (forall q, (0 < room q)%nat) -> reachable fab room sends s ->
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
      + destruct V as (fates & rec & F & _). cbn in F.
        apply Forall2_middle in F as (f1 & (k0, to) & f2 & -> & F1 & Fi & F2).
        unfold fate_of in Fi. rewrite P in Fi.
        apply (runs_split_channel delivery fab rk _ _ _ _ _ []) in Fi as (_ & _ & kc & tc & _ & C & _).
        destruct C as [c ts kc tc _ (outs & Arrives) _].
        eexists. eapply move_pass with (p1 := []); eauto.
      + rewrite Q in W. apply (IH (queue_of fab c ts)); [|lia].
        destruct (waiting_in (queue_of fab c ts) (l1 ++ i :: l2)) as [|j w] eqn:X.
        * specialize (Room (queue_of fab c ts)). cbn in D. lia.
        * exists j. assert (Y : In j (waiting_in (queue_of fab c ts) (l1 ++ i :: l2)))
            by (rewrite X; now left).
          apply filter_In in Y as (Y & Z). split; [easy|]. now apply N.eqb_eq.
    - eexists. eapply move_lost with (p1 := []); eauto.
  Qed.

  Lemma sending_works l lg st h f : In h (hosts fab) -> sends h f ->
    exists s', inject fab sends (State l lg st) s' /\ sent s' = (h, (dst f, src f)) :: st.
  Proof.
    intros I D. destruct (K h f I D) as (_ & (outs & A) & _). eexists. split.
    - econstructor; eassumption.
    - reflexivity.
  Qed.

  Lemma always_defined s i c ts : reachable fab room sends s -> In i (items s) ->
    In (ToChannel c, ts) (pending i) -> ~ undefined fab c (i_dst i) (i_src i) ts.
  Proof.
    intros R I J. apply reachable_invariant in R as (n & fates & rec & F & _).
    apply in_split in I as (l1 & l2 & E). rewrite E in F.
    apply Forall2_middle in F as (f1 & (k, to) & f2 & -> & F1 & Fi & F2).
    unfold fate_of in Fi. apply in_split in J as (p1 & p2 & E2). rewrite E2 in Fi.
    apply runs_split_channel in Fi as (_ & _ & kc & tc & _ & C & _). now destruct C.
  Qed.

  Lemma settled s : reachable fab room sends s -> exists n, settles_within fab room s n.
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

  Lemma delivered s : delivery = true -> reachable fab room sends s -> items s = [] ->
    exists receivers : list (list N),
      Forall2 (fun r l => forall w, wanted fab (fst r) (fst (snd r)) = Some w -> Permutation w l)
              (sent s) receivers
      /\ Permutation (log s) (promised (sent s) receivers).
  Proof.
    intros Delivery R E. apply reachable_invariant in R as (n & fates & rec & F & _ & Delivering).
    destruct (Delivering Delivery) as (W & P).
    rewrite E in *. inversion F; subst. cbn in P. rewrite app_nil_r in P. eauto.
  Qed.
End Network.

Lemma followed_deadlock_free delivery fab rk (sends : sending) :
  (forall h f, In h (hosts fab) -> sends h f -> followed delivery fab rk h f) ->
  deadlock_free fab sends.
Proof.
  intros K. split; intros.
  - now apply sending_works with (delivery := delivery) (rk := rk).
  - now destruct (K h f).
  - now apply always_defined with (delivery := delivery) (rk := rk) (room := room)
      (sends := sends) (s := s).
  - now apply no_deadlock with (delivery := delivery) (rk := rk) (room := room) (sends := sends).
  - now apply progress with (delivery := delivery) (rk := rk) (sends := sends).
  - now apply settled with (delivery := delivery) (rk := rk) (sends := sends).
Qed.

Lemma followed_safe fab rk (sends : sending) :
  (forall h f, In h (hosts fab) -> sends h f -> followed true fab rk h f) -> safe fab sends.
Proof.
  intros K. split; [now apply followed_deadlock_free with true rk|]. intros.
  now apply delivered with (delivery := true) (rk := rk) (room := room) (sends := sends).
Qed.

(** * The theorems *)

Lemma prepared_sound A (f : N -> A) channels c : prepared f (prepare f channels) c = f c.
Proof.
  unfold prepared, prepare.
  assert (Sound : forall ready, (forall x, Map.find ready c = Some x -> x = f c) ->
    forall x, Map.find (fold_left (fun m c => Map.add m c (f c)) channels ready) c = Some x ->
    x = f c).
  { induction channels as [|c' more IH]; [easy|]. intros ready Ready. cbn [fold_left]. apply IH.
    intros x Found. apply find_added in Found as [(-> & ->)|Old]; [easy|now apply Ready]. }
  destruct (Map.find _ c) as [x|] eqn:Found; [|reflexivity].
  now apply Sound in Found.
Qed.

Lemma ascending_once l : ascending l = true -> NoDup l.
Proof.
  enough (Above : ascending l = true -> NoDup l /\ forall x more y, l = x :: more -> In y more -> x < y)
    by (intros Ascending; now apply Above).
  induction l as [|x l IH]; intros Ascending; [split; [constructor|easy]|].
  destruct l as [|y l].
  - split; [now repeat constructor|]. intros x' more z Split. now injection Split as <- <-.
  - cbn [ascending] in Ascending. apply andb_true_iff in Ascending as (Less & Ascending).
    apply N.ltb_lt in Less. destruct (IH Ascending) as (Once & Above).
    assert (All : forall z, In z (y :: l) -> x < z).
    { intros z [<-|Member]; [easy|]. apply N.lt_trans with y; [easy|]. now apply (Above y l). }
    split.
    + constructor; [|easy]. intros Member. apply All in Member. now apply N.lt_irrefl in Member.
    + intros x' more z Split. injection Split as <- <-. apply All.
Qed.

Lemma members_all l : Permutation (members (fold_right (fun h => together (just h)) [] l)) l.
Proof.
  induction l as [|h l IH]; [reflexivity|]. cbn [fold_right].
  rewrite members_together, members_just, IH. reflexivity.
Qed.

Lemma macs_small fab : have_48_bits fab = true ->
  forall h, In h (hosts fab) -> mac fab h <= address_bits.
Proof. unfold have_48_bits. rewrite forallb_forall. intros Small h Host. now apply N.leb_le, Small. Qed.

Lemma checked_followed delivery fab rk fuel channels classes :
  check delivery fab rk fuel channels classes = true ->
  forall h d c, In h (hosts fab) -> In c classes -> within c d ->
  followed delivery fab rk h (Frame d (mac fab h) []).
Proof.
  unfold check, with_rules. cbv zeta. rewrite !andb_true_iff, forallb_forall.
  intros ((Macs & Ascending) & Checked) h d c Host Class Within.
  assert (Sorted := NSort.Permuted_sort (hosts fab)).
  eapply check_class_sound with (5 := Checked c Class); [| | | |exact Within|exact Host].
  - intros c'. apply prepared_sound.
  - now rewrite members_all, <- Sorted.
  - apply (Permutation_NoDup (Permutation_sym Sorted)). now apply ascending_once.
  - now apply macs_small.
Qed.

Lemma small d : d < 2 ^ 48 -> d <= N.ones 48.
Proof. intros D. change (N.ones 48) with (N.pred (2 ^ 48)). now apply N.lt_le_pred. Qed.

Definition in_classes (classes : list class) (d : N) : Prop :=
  d < 2 ^ 48 /\ exists c, In c classes /\ in_class c d = true.

Lemma check_followed delivery fab rk fuel channels classes :
  check delivery fab rk fuel channels classes = true ->
  forall h f, In h (hosts fab) -> own_frames fab (in_classes classes) h f ->
  followed delivery fab rk h f.
Proof.
  intros Checked h (d, s, ts) Host ((Address & c & Class & Member) & Own & Untagged).
  cbn in *. subst. apply (checked_followed _ _ _ _ _ _ Checked h d c Host Class).
  split; [easy|now apply small].
Qed.

(** Of frames to the addresses of some classes. *)
Theorem check_sound fab rk fuel channels classes :
  check true fab rk fuel channels classes = true -> safe fab (own_frames fab (in_classes classes)).
Proof. intros Checked. apply followed_safe with rk. now apply check_followed with fuel channels. Qed.

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

Lemma are_all_sound classes d : are_all classes = true -> d < 2 ^ 48 -> in_classes classes d.
Proof.
  unfold are_all. rewrite !andb_true_iff. intros ((Small & Exceptions) & Cover) Address.
  split; [easy|].
  destruct (cover_sound 48 _ d Cover) as (p & Cube & Bits).
  apply in_map_iff in Cube as (c & <- & Class).
  apply in_some_class with c; auto.
  apply fits_spec. intros i Mask. apply Bits; [|easy].
  rewrite forallb_forall in Small. specialize (Small c Class). apply N.leb_le in Small.
  destruct (N.lt_ge_cases i (N.of_nat 48)) as [Low|High]; [easy|].
  rewrite <- (N.mod_small (snd (fst c)) (2 ^ 48)) in Mask.
  - rewrite N.mod_pow2_bits_high in Mask; [discriminate|easy].
  - apply N.le_lt_trans with (1 := Small). reflexivity.
Qed.

Lemma check_all_followed delivery fab rk fuel channels classes :
  check_all delivery fab rk fuel channels classes = true ->
  forall h f, In h (hosts fab) -> own_frames fab (fun d => d < 2 ^ 48) h f ->
  followed delivery fab rk h f.
Proof.
  unfold check_all. rewrite andb_true_iff. intros (All & Checked) h f Host (Address & Own).
  apply (check_followed _ _ _ _ _ _ Checked h f Host). split; [|easy]. now apply are_all_sound.
Qed.

(** Of frames to any address, wherever they arrive. *)
Theorem check_all_deadlock_free delivery fab rk fuel channels classes :
  check_all delivery fab rk fuel channels classes = true ->
  deadlock_free fab (own_frames fab (fun d => d < 2 ^ 48)).
Proof.
  intros Checked. apply followed_deadlock_free with delivery rk.
  now apply check_all_followed with fuel channels classes.
Qed.

(** The same, and they arrive. *)
Theorem check_all_sound fab rk fuel channels classes :
  check_all true fab rk fuel channels classes = true ->
  safe fab (own_frames fab (fun d => d < 2 ^ 48)).
Proof.
  intros Checked. apply followed_safe with rk.
  now apply check_all_followed with fuel channels classes.
Qed.

(** Of all frames that hosts may send. *)
Theorem check_all_any_sound forge tag fab rk fuel channels classes :
  check_all_any forge tag fab rk fuel channels classes = true ->
  deadlock_free fab (any_frames fab forge tag).
Proof.
  unfold check_all_any, check_any, with_rules. cbv zeta. set (rules := prepared _ _).
  rewrite !andb_true_iff. intros (All & (Macs & Versions) & Checked).
  assert (Rules : forall c, rules c = tables_of fab c) by (intros c; apply prepared_sound).
  apply followed_deadlock_free with false rk. intros h f Host Sends.
  assert (Mac := macs_small fab Macs h Host).
  assert (Some_version : rules (from_host fab h) <> []).
  { rewrite forallb_forall in Versions. specialize (Versions h Host). now destruct (rules _). }
  destruct (frame_seen fab forge tag h f Mac Sends) as (ts & x & p0 & rest & View & Cube & Small & Source & Real).
  destruct Sends as (Address & _).
  destruct (are_all_sound classes (dst f) All Address) as (_ & dc & Class & Member).
  rewrite forallb_forall in Checked. specialize (Checked dc Class).
  destruct (admitted_sound fab rk rules Rules (from_host fab h) ts x Some_version fuel
              (first_cube forge fab h ts) Cube) as [(xc & Let_in & Cube')|Dropped].
  - assert (Start : In (from_host fab h, ts, xc) (starts forge tag fab rules fuel)).
    { unfold starts. apply in_flat_map. exists h. split; [easy|]. apply in_flat_map.
      exists ts. split; [easy|]. now apply (in_map (fun x => (from_host fab h, ts, x))). }
    destruct (check_any_class_sound fab rk rules _ fuel Rules _ _ Checked _ _ _ Start (dst f) x p0 rest)
      as (k & to & Run); [split; [easy|now apply small]|easy|easy|].
    rewrite Source, Real in Run. now apply run_followed in Run.
  - specialize (Dropped (dst f) p0 rest). rewrite Source, Real in Dropped. now apply run_followed in Dropped.
Qed.

Print Assumptions check_sound.
Print Assumptions check_all_sound.
Print Assumptions check_all_deadlock_free.
Print Assumptions check_all_any_sound.
