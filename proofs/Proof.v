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

Lemma does_as_alike a b : does_as a b = true -> alike a b.
Proof.
  unfold does_as. rewrite !andb_true_iff. intros (((Acts & Write) & Writes) & Goto).
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
  Variables (dc : class) (sc : pattern) (d s : N).
  Hypotheses (Hd : in_class dc d = true) (Hs : fits sc s = true).

  Lemma matches_yes r port meta ts : fits (r_port r) port = true ->
    matches_class r meta (vid ts) (pcp ts) dc sc = Yes -> matches r port meta d s ts = true.
  Proof.
    unfold matches_class, matches. intros ->.
    destruct (fits (r_meta r) meta); [|discriminate].
    destruct (fits (r_vid r) (vid ts)); [|discriminate].
    destruct (fits (r_pcp r) (pcp ts)); [|discriminate]. cbn.
    destruct (fits_class (r_dst r) dc) eqn:Dst; try discriminate.
    - intros Src. rewrite (fits_class_yes _ _ _ Dst Hd), (fits_cube_yes _ _ _ Src Hs). reflexivity.
    - destruct (fits_cube (r_src r) sc); discriminate.
  Qed.

  Lemma matches_no r port meta ts :
    matches_class r meta (vid ts) (pcp ts) dc sc = No -> matches r port meta d s ts = false.
  Proof.
    unfold matches_class, matches. destruct (fits (r_port r) port); [|reflexivity].
    destruct (fits (r_meta r) meta); [|reflexivity].
    destruct (fits (r_vid r) (vid ts)); [|reflexivity].
    destruct (fits (r_pcp r) (pcp ts)); [|reflexivity]. cbn.
    destruct (fits_class (r_dst r) dc) eqn:Dst.
    - intros Src. rewrite (fits_cube_no _ _ _ Src Hs). apply andb_false_r.
    - intros _. now rewrite (fits_class_no _ _ _ Dst Hd).
    - destruct (fits_cube (r_src r) sc) eqn:Src; try discriminate.
      intros _. rewrite (fits_cube_no _ _ _ Src Hs). apply andb_false_r.
  Qed.

  Definition level_of_port (port : N) (l : list rule) : list rule :=
    filter (fun r => fits (r_port r) port) l.

  Lemma other_port r port meta ts :
    fits (r_port r) port = false -> matches r port meta d s ts = false.
  Proof. unfold matches. now intros ->. Qed.

  Lemma undecided_unknown r (hits : list rule) : undecided r dc <> Known hits.
  Proof. unfold undecided. now destruct (fits_class (r_dst r) dc). Qed.

  (** The rules of one priority that match, but for those that do the same as others. *)
  Definition level_hits (l hits : list rule) port meta ts : Prop :=
    (forall r, In r hits -> In r l /\ matches r port meta d s ts = true)
    /\ forall r, In r l -> matches r port meta d s ts = true ->
       exists r', In r' hits /\ alike r r'.

  Lemma skipped_rule r l hits port meta ts : matches r port meta d s ts = false ->
    level_hits l hits port meta ts -> level_hits (r :: l) hits port meta ts.
  Proof.
    intros Miss (Hits & All_hits). split.
    - intros r' Hit. destruct (Hits r' Hit). split; [now right|easy].
    - intros r' [<-|Member] Matches; [congruence|now apply All_hits].
  Qed.

  Lemma in_level_sound port meta ts : forall l hits,
    in_level (level_of_port port l) meta (vid ts) (pcp ts) dc sc = Known hits ->
    level_hits l hits port meta ts.
  Proof.
    induction l as [|r l IH]; intros hits; cbn [level_of_port filter].
    { intros Result. cbn in Result. injection Result as <-. easy. }
    destruct (fits (r_port r) port) eqn:Port.
    2: { intros Rest. apply skipped_rule; [now apply other_port|now apply IH]. }
    cbn [in_level]. fold (level_of_port port l).
    destruct (matches_class r meta (vid ts) (pcp ts) dc sc) eqn:Match.
    - destruct (in_level (level_of_port port l) meta (vid ts) (pcp ts) dc sc) as [rest| |] eqn:Rest;
        try discriminate.
      destruct (IH _ eq_refl) as (Hits & All_hits). apply (matches_yes r port) in Match; [|easy].
      intros Result. injection Result as <-. destruct (existsb (does_as r) rest) eqn:Known_effect.
      + split.
        * intros r' Hit. destruct (Hits r' Hit). split; [now right|easy].
        * intros r' [<-|Member] Matches; [|now apply All_hits].
          apply existsb_exists in Known_effect as (r' & Hit & Same). exists r'.
          split; [easy|now apply does_as_alike].
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

  Definition table_hits (t : table) (hits : list rule) port meta ts : Prop :=
    (hits = [] -> missed t port meta d s ts)
    /\ (forall r, In r hits -> may_count t r port meta d s ts)
    /\ forall r, may_count t r port meta d s ts -> exists r', In r' hits /\ alike r r'.

  Lemma in_table_sound port meta ts : forall t hits,
    in_table (rules_of_port port t) meta (vid ts) (pcp ts) dc sc = Known hits ->
    table_hits t hits port meta ts.
  Proof.
    induction t as [|l t IH]; intros hits; cbn [rules_of_port map in_table].
    { intros Result. injection Result as <-. split; [easy|]. split; [easy|].
      intros r (higher & level & lower & Split & _). now destruct higher. }
    fold (level_of_port port l). fold (rules_of_port port t).
    destruct (in_level (level_of_port port l) meta (vid ts) (pcp ts) dc sc) as [[|r0 hits0]| |]
      eqn:Level; try discriminate; apply in_level_sound in Level as (Hits & All_hits).
    - assert (Nothing : forall r, In r l -> matches r port meta d s ts = false).
      { intros r Member. destruct (matches r port meta d s ts) eqn:Matches; [|reflexivity].
        destruct (All_hits r Member Matches) as (r' & [] & _). }
      intros Rest. apply IH in Rest as (Miss & Count & All_count). split; [|split].
      + intros Empty l' r [<-|Member] In_level; [now apply Nothing|now apply (Miss Empty l')].
      + intros r Hit. destruct (Count r Hit) as (higher & level & lower & -> & Above & Member).
        exists (l :: higher), level, lower. split; [reflexivity|]. split; [|easy].
        intros l' r' [<-|In_higher] In_level; [now apply Nothing|now apply (Above l')].
      + intros r (higher & level & lower & Split & Above & Member & Matches).
        destruct higher as [|l' higher]; injection Split as <- Split.
        * rewrite (Nothing r Member) in Matches. discriminate.
        * apply All_count. exists higher, level, lower. split; [easy|]. split; [|easy].
          intros l' r' In_higher In_level. apply (Above l'); [now right|easy].
    - intros Result. injection Result as <-. split; [easy|]. split.
      + intros r Hit. destruct (Hits r Hit) as (Member & Matches). exists [], l, t. easy.
      + intros r (higher & level & lower & Split & Above & Member & Matches).
        destruct higher as [|l' higher]; injection Split as <- Split; [now apply All_hits|].
        destruct (Hits r0 (or_introl eq_refl)) as (Member0 & Matches0).
        rewrite (Above l r0 (or_introl eq_refl) Member0) in Matches0. discriminate.
  Qed.

  Lemma missed_not_counting t r port meta ts :
    missed t port meta d s ts -> ~ may_count t r port meta d s ts.
  Proof.
    intros Missed (higher & l & lower & -> & _ & Member & Matches).
    rewrite (Missed l r) in Matches; [discriminate| |easy]. apply in_or_app. right. now left.
  Qed.

  (** The tables of a port, from number [from] on. *)
  Definition tables_from (sw : switch) (port : N) (from : nat) (l : list table) : Prop :=
    forall i, nth i l [] = rules_of_port port (nth (from + i) (tables sw) []).

  (** The choices are those that the relation allows; what is not defined is not among them. *)
  Definition all_choices (choices : list (list copy)) (possible : option (list copy) -> Prop) : Prop :=
    (forall copies, In copies choices -> possible (Some copies))
    /\ forall result, possible result -> exists copies, result = Some copies /\ In copies choices.

  Lemma handle_sound sw port : forall l from target meta ts choices,
    tables_from sw port from l -> (from <= target)%nat ->
    handle sw port dc sc l from target meta ts = Known choices ->
    all_choices choices (handled sw port d s target meta ts).
  Proof.
    assert (Miss : forall t meta ts choices, missed (nth t (tables sw) []) port meta d s ts ->
        Known [[]] = Known choices -> all_choices choices (handled sw port d s t meta ts)).
    { intros t meta ts choices Missed Result. injection Result as <-. split.
      - intros copies [<-|[]]. now apply handled_miss.
      - intros result Other. inversion Other; subst;
          try (exfalso; eapply missed_not_counting; eassumption).
        exists []. split; [reflexivity|now left]. }
    induction l as [|t l IH]; intros from target meta ts choices Tables Order; cbn [handle].
    - apply Miss. specialize (Tables (target - from)%nat).
      replace (from + (target - from))%nat with target in Tables by lia.
      intros level r Level Rule. destruct (nth target (tables sw) []) as [|l' t']; [easy|].
      destruct (target - from)%nat; discriminate Tables.
    - assert (Tables' : tables_from sw port (S from) l).
      { intros i. specialize (Tables (S i)). cbn [nth] in Tables. rewrite Tables.
        now rewrite PeanoNat.Nat.add_succ_r. }
      destruct (Nat.eqb from target) eqn:Here.
      2: { apply PeanoNat.Nat.eqb_neq in Here. apply IH; [easy|lia]. }
      apply PeanoNat.Nat.eqb_eq in Here. subst target.
      specialize (Tables O). cbn [nth] in Tables. rewrite PeanoNat.Nat.add_0_r in Tables. subst t.
      destruct (in_table (rules_of_port port _) meta (vid ts) (pcp ts) dc sc) as [hits| |] eqn:Table;
        try discriminate; apply in_table_sound in Table as (No_hit & Count & All_count).
      destruct hits as [|r0 hits0]; [apply Miss; now apply No_hit|].
      assert (Hit0 : In r0 (r0 :: hits0)) by now left.
      set (hits := r0 :: hits0) in *. clearbody hits. clear No_hit hits0. cbv zeta.
      intros Collect. apply collect_sound in Collect as (Each_rule & Only_rules). split.
      + intros copies Choice.
        destruct (Only_rules copies Choice) as (r & of_rule & Hit & Effects & In_rule).
        apply collect_sound in Effects as (_ & Only_effects).
        destruct (Only_effects copies In_rule) as ([(ts', out)|] & some & Effect & Known_some & In_some);
          [|discriminate].
        destruct (r_goto r) as [next|] eqn:Next.
        * destruct (Nat.ltb from next) eqn:Later; [|discriminate].
          apply PeanoNat.Nat.ltb_lt in Later. apply collect_sound in Known_some as (_ & Only_writes).
          destruct (Only_writes copies In_some) as (w & behind & Write & Handle & In_behind).
          destruct (handle sw port dc sc l (S from) next (written w meta) ts') as [outs| |] eqn:Rest;
            try discriminate. injection Handle as <-.
          apply in_map_iff in In_behind as (out' & <- & In_outs).
          apply IH in Rest as (Possible & _); [|easy|lia].
          change (Some (out ++ out')) with (option_map (app out) (Some out')).
          eapply handled_goto; eauto.
        * injection Known_some as <-. destruct In_some as [<-|[]]. eapply handled_end; eauto.
      + assert (Effect_known : forall r e, may_count (nth from (tables sw) []) r port meta d s ts ->
          In e (apply sw port (r_acts r) ts []) -> exists r' of_effect, alike r r'
            /\ match e with
               | None => Refuse
               | Some (ts', out) =>
                   match r_goto r' with
                   | None => Known [out]
                   | Some next =>
                       if Nat.ltb from next
                       then collect (fun w =>
                         match handle sw port dc sc l (S from) next (written w meta) ts' with
                         | Known outs => Known (map (app out) outs)
                         | other => other
                         end) (r_write r' :: r_writes r')
                       else Refuse
                   end
               end = Known of_effect /\ incl of_effect choices).
        { intros r e Counts Effect. destruct (All_count r Counts) as (r' & Hit & Same).
          destruct (Each_rule r' Hit) as (of_rule & Effects & In_choices).
          apply collect_sound in Effects as (Each_effect & _).
          destruct (Each_effect e) as (of_effect & Known_effect & In_rule).
          { destruct Same as (<- & _). exact Effect. }
          exists r', of_effect. split; [exact Same|]. split; [exact Known_effect|].
          now apply incl_tran with of_rule. }
        intros result Handled. inversion Handled; subst.
        * exfalso. eapply missed_not_counting; eauto.
        * match goal with Counts : may_count _ _ _ _ _ _ _, Effect : In _ _ |- _ =>
            destruct (Effect_known _ _ Counts Effect) as (r' & some & Same & Known_some & Incl) end.
          destruct Same as (_ & _ & _ & Goto). rewrite <- Goto in Known_some.
          match goal with Last : r_goto _ = None |- _ => rewrite Last in Known_some end.
          injection Known_some as <-. exists out. split; [reflexivity|]. apply Incl. now left.
        * match goal with Counts : may_count _ _ _ _ _ _ _, Effect : In (Some _) _ |- _ =>
            destruct (Effect_known _ _ Counts Effect) as (r' & some & Same & Known_some & Incl) end.
          destruct Same as (_ & Write & Writes & Goto). rewrite <- Goto, <- Write, <- Writes in Known_some.
          match goal with Next : r_goto _ = Some _ |- _ => rewrite Next in Known_some end.
          destruct (Nat.ltb from t') eqn:Later; [|discriminate].
          apply PeanoNat.Nat.ltb_lt in Later.
          apply collect_sound in Known_some as (Each_write & _).
          match goal with Write : In ?w (_ :: _) |- _ =>
            destruct (Each_write w Write) as (behind & Handle & In_some) end.
          destruct (handle sw port dc sc l (S from) t' (written w meta) ts') as [outs| |] eqn:Rest;
            try discriminate. injection Handle as <-.
          apply IH in Rest as (_ & All_results); [|easy|lia].
          match goal with Handled : handled _ _ _ _ t' _ _ _ |- _ =>
            destruct (All_results _ Handled) as (copies & -> & In_outs) end.
          exists (out ++ copies). split; [reflexivity|]. apply Incl, In_some.
          now apply (in_map (app out)).
        * match goal with Counts : may_count _ ?r _ _ _ _ _ |- _ =>
            assert (Some_effect : exists e, In e (apply sw port (r_acts r) ts []));
            [|destruct Some_effect as (e & Effect);
              destruct (Effect_known _ _ Counts Effect) as (r' & some & Same & Known_some & Incl)] end.
          { apply apply_some. }
          destruct Same as (_ & _ & _ & Goto). rewrite <- Goto in Known_some.
          match goal with Next : r_goto _ = Some _ |- _ => rewrite Next in Known_some end.
          destruct e as [(ts', out)|]; [|discriminate].
          destruct (Nat.ltb from t') eqn:Later; [|discriminate].
          apply PeanoNat.Nat.ltb_lt in Later. lia.
        * match goal with Counts : may_count _ _ _ _ _ _ _, Effect : In None _ |- _ =>
            destruct (Effect_known _ _ Counts Effect) as (r' & some & Same & Known_some & Incl) end.
          discriminate.
  Qed.

  (** The same for the frame of a channel, with what is behind the ports. *)
  Definition entered (fab : fabric) (c : N) (ts : stack) (choices : list (list out)) : Prop :=
    ~ undefined fab c d s ts
    /\ (forall outs, In outs choices -> arrives fab c d s ts outs)
    /\ forall outs, arrives fab c d s ts outs -> In outs choices.

  Lemma arrive_sound fab rules c ts choices :
    rules c = tables_of fab c -> arrive fab rules c dc sc ts = Known choices ->
    entered fab c ts choices.
  Proof.
    unfold arrive, entered, undefined, arrives, enters, tables_of. intros ->.
    destruct (entering fab c) as (at_switch, port). cbn [fst snd].
    intros Collect. apply collect_sound in Collect as (Each & Only).
    assert (Handled : forall sw all,
      handle sw port dc sc (map (rules_of_port port) (tables sw)) 0 0 0 ts = Known all ->
      all_choices all (handled sw port d s 0 0 ts)).
    { intros sw all. apply handle_sound; [|lia]. intros i. cbn.
      apply (map_nth (rules_of_port port) _ [] i). }
    assert (Version : forall sw, In sw (versions fab at_switch) -> exists all,
      all_choices all (handled sw port d s 0 0 ts)
      /\ incl (map (map (resolved fab at_switch sw)) all) choices).
    { intros sw Held. destruct (Each (sw, map (rules_of_port port) (tables sw))) as (some & Some_choices & Incl).
      - now apply (in_map (fun sw => (sw, map (rules_of_port port) (tables sw)))).
      - cbn [fst snd] in Some_choices.
        destruct (handle sw port dc sc _ 0 0 0 ts) as [all| |] eqn:Result; try discriminate.
        injection Some_choices as <-. exists all. split; [now apply Handled|easy]. }
    split; [|split].
    - intros (sw & Held & Undefined). destruct (Version sw Held) as (all & (_ & All_results) & _).
      destruct (All_results None Undefined) as (copies & Some_copies & _). discriminate.
    - intros outs Choice. destruct (Only outs Choice) as (v & some & Member & Some_choices & In_some).
      apply in_map_iff in Member as (sw & <- & Held). cbn [fst snd] in Some_choices.
      destruct (handle sw port dc sc _ 0 0 0 ts) as [all| |] eqn:Result; try discriminate.
      injection Some_choices as <-. apply in_map_iff in In_some as (copies & <- & In_all).
      destruct (Handled sw all Result) as (Possible & _).
      exists sw, copies. split; [split; [easy|now apply Possible]|reflexivity].
    - intros outs (sw & copies & (Held & Enters) & ->).
      destruct (Version sw Held) as (all & (_ & All_results) & Incl). apply Incl.
      destruct (All_results _ Enters) as (copies' & Same & Choice). injection Same as <-.
      now apply in_map.
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
  Variables (delivery : bool) (fab : fabric) (rk : ranking) (rules : N -> list held)
    (tests : N -> tested).
  Hypothesis Rules : forall c, rules c = tables_of fab c.

  (** What becomes of a frame on a channel, and of one in its buffer. *)
  Definition ends (o : outcome) (d s c : N) (ts : stack) : Prop :=
    exists k to, run delivery fab rk d s c ts k to /\ describes delivery fab o d to.
  Definition all_end (o : outcome) (d s from : N) (outs : list out) : Prop :=
    exists k to, runs delivery fab rk d s from outs k to /\ describes delivery fab o d to.

  (** An outcome of frames to some addresses, with the source [s] or one like it. *)
  Definition ends_so (k : known) (addresses : N -> Prop) (s c : N) (ts : stack) : Prop :=
    forall d s', addresses d -> fits (s, fst k) s' = true -> ends (snd k) d s' c ts.

  Definition inside (value : bool) (dc : class) (bit : N) (addresses : N -> Prop) (d : N) : Prop :=
    addresses d /\ in_class (half value dc bit) d = true.

  Definition chosen (value : bool) (both : part * part) : part :=
    if value then snd both else fst both.

  (** Of frames to some addresses of a class. *)
  Inductive memo_sound : (N -> Prop) -> class -> memo -> Prop :=
  | outcomes_sound (addresses : N -> Prop) dc m :
      (forall c ts s k, recall m c ts s = Some k -> ends_so k addresses s c ts) ->
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

  Lemma stack_eqb_eq a : forall b, stack_eqb a b = true -> a = b.
  Proof.
    induction a as [|(x, y) a IH]; intros [|(x', y') b]; cbn; try easy.
    rewrite !andb_true_iff. unfold tag_eqb. cbn. rewrite andb_true_iff, !N.eqb_eq.
    intros ((-> & ->) & H). now rewrite (IH _ H).
  Qed.

  Lemma recall_remember m c ts s k c' ts' s' k' :
    recall (remember m c ts s k) c' ts' s' = Some k' ->
    (c' = c /\ ts' = ts /\ fits (s, fst k) s' = true /\ k' = k) \/ recall m c' ts' s' = Some k'.
  Proof.
    unfold recall, remember. cbn [outcomes].
    destruct (Map.find (Map.add _ c _) c') as [l|] eqn:Added; [|discriminate].
    apply find_added in Added as [(-> & ->)|Old]; [|rewrite Old; now right]. cbn [assoc].
    destruct (stack_eqb ts' ts && fits (s, fst k) s') eqn:Same.
    - intros Found. injection Found as <-. left. apply andb_true_iff in Same as (Same & Fits).
      apply stack_eqb_eq in Same. destruct k. easy.
    - destruct (Map.find (outcomes m) c); [now right|discriminate].
  Qed.

  Lemma memo_sound_remember addresses dc m c ts s k : memo_sound addresses dc m ->
    ends_so k addresses s c ts -> memo_sound addresses dc (remember m c ts s k).
  Proof.
    intros Sound New. destruct Sound as [addresses dc m Outcomes Parts]. constructor; [|exact Parts].
    intros c' ts' s' k' Found.
    apply recall_remember in Found as [(-> & -> & Fits & ->)|Found]; [|now apply Outcomes].
    intros d x Address Like. apply New; [easy|]. now apply fits_agreeing with s'.
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

  (** [go] follows frames with the source [s]. *)
  Definition sound (addresses : N -> Prop) (dc : class) (s : N)
    (go : memo -> N -> stack -> option (memo * known)) : Prop :=
    forall m c ts m' k, memo_sound addresses dc m -> go m c ts = Some (m', k) ->
    memo_sound addresses dc m' /\ ends_so k addresses s c ts.

  Lemma follow_all_sound addresses dc s0 go from : sound addresses dc s0 go ->
    forall outs m m' k0, memo_sound addresses dc m ->
    follow_all delivery fab rk go from m outs = Some (m', k0) ->
    memo_sound addresses dc m'
    /\ forall d s, addresses d -> fits (s0, fst k0) s = true -> all_end (snd k0) d s from outs.
  Proof.
    intros Go. induction outs as [|([h|c|], ts) outs IH]; intros m m' k0 Sound; cbn [follow_all].
    - intros Result; injection Result as <- <-. split; [easy|].
      intros. exists 1, []. split; [constructor|intros _; reflexivity].
    - destruct delivery eqn:Delivery.
      + destruct ts; [|discriminate].
        destruct (follow_all true fab rk go from m outs) as [(m1, (bits, [l|]))|] eqn:Rest; try discriminate.
        intros Result; injection Result as <- <-. destruct (IH _ _ _ Sound Rest) as (Sound' & End).
        split; [easy|]. intros d s Hd Hs. destruct (End d s Hd Hs) as (k & to & Run & Describes).
        exists (1 + k), (h :: to). split; [apply (runs_host _ _ _ _ _ _ h []), Run|].
        intros Yes. specialize (Describes Yes). cbn [snd] in *.
        rewrite members_together, members_just. now constructor.
      + intros Rest. destruct (IH _ _ _ Sound Rest) as (Sound' & End). split; [easy|].
        intros d s Hd Hs. destruct (End d s Hd Hs) as (k & to & Run & _).
        exists (1 + k), (untagged ts h ++ to). split; [apply runs_host, Run|]. unfold describes. congruence.
    - cbv zeta. destruct ((rank rk from <? _) && _ && _) eqn:Ranks; [|discriminate].
      apply andb_true_iff in Ranks as (Ranks & Sure). apply andb_true_iff in Ranks as (Rises & Bounded).
      apply N.ltb_lt in Rises. apply N.leb_le in Bounded.
      assert (Reliable : delivery = true -> may_fail fab c = false).
      { intros Delivery. rewrite Delivery in Sure. now apply negb_true_iff in Sure. }
      destruct (go m c ts) as [(m1, (bits1, o1))|] eqn:First; [|discriminate].
      destruct (follow_all delivery fab rk go from m1 outs) as [(m2, (bits2, o2))|] eqn:Rest; [|discriminate].
      destruct (outcome_and o1 o2) as [o3|] eqn:And; [|discriminate].
      intros Result; injection Result as <- <-.
      destruct (Go _ _ _ _ _ Sound First) as (Sound1 & End1).
      destruct (IH _ _ _ Sound1 Rest) as (Sound2 & End2).
      split; [easy|]. intros d s Hd Hs. apply fits_both in Hs as (Hs1 & Hs2).
      destruct (End1 d s Hd Hs1) as (k1 & to1 & Run1 & Describes1).
      destruct (End2 d s Hd Hs2) as (k2 & to2 & Run2 & Describes2).
      exists (1 + k1 + k2), (to1 ++ to2). split; [now apply runs_channel|].
      now apply (outcome_and_describes delivery fab o1 o2).
    - intros Rest. destruct (IH _ _ _ Sound Rest) as (Sound' & End). split; [easy|].
      intros d s Hd Hs. destruct (End d s Hd Hs) as (k & to & Run & Describes).
      exists (1 + k), to. split; [now constructor|easy].
  Qed.

  (** The same of all choices. *)
  Definition choices_end (o : outcome) (d s from : N) (choices : list (list out)) : Prop :=
    exists k to, describes delivery fab o d to /\ forall outs, In outs choices ->
      exists k' to', k' <= k /\ (delivery = true -> Permutation to' to)
        /\ runs delivery fab rk d s from outs k' to'.

  Lemma follow_each_sound dc (addresses : N -> Prop) s0 owners go from :
    sound addresses dc s0 go ->
    (forall d, addresses d -> within dc d) -> has_owners fab addresses owners ->
    forall choices m m' k, memo_sound addresses dc m ->
    follow_each delivery fab rk go from dc owners m choices = Some (m', k) ->
    memo_sound addresses dc m' /\ choices <> []
    /\ forall d s, addresses d -> fits (s0, fst k) s = true -> choices_end (snd k) d s from choices.
  Proof.
    intros Go Class Owners. induction choices as [|outs choices IH]; [easy|].
    intros m m' k0 Sound. cbn [follow_each].
    destruct (follow_all delivery fab rk go from m outs) as [(m1, (bits1, o1))|] eqn:First.
    2: now destruct choices.
    destruct (follow_all_sound _ _ _ _ _ Go _ _ _ _ Sound First) as (Sound1 & End1).
    destruct choices as [|outs2 choices].
    - intros Result. injection Result as <- <-. split; [easy|]. split; [easy|].
      intros d s Address Source. destruct (End1 d s Address Source) as (k & to & Runs & Describes).
      exists k, to. split; [easy|]. intros outs' [<-|[]]. exists k, to. split; [lia|]. easy.
    - set (more := outs2 :: choices) in *. clearbody more.
      destruct (follow_each delivery fab rk go from dc owners m1 more) as [(m2, (bits2, o2))|] eqn:Rest;
        [|discriminate].
      destruct (join (mac fab) dc dc owners owners o1 o2) as [o3|] eqn:Join; [|discriminate].
      intros Result. injection Result as <- <-.
      destruct (IH _ _ _ Sound1 Rest) as (Sound2 & _ & End2). split; [easy|]. split; [easy|].
      intros d s Address Source. apply fits_both in Source as (Source1 & Source2).
      destruct (End1 d s Address Source1) as (k1 & to1 & Runs1 & Describes1).
      destruct (End2 d s Address Source2) as (k2 & to2 & Describes2 & Runs2).
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
    sound addresses dc s (follow delivery fab rk rules tests fuel dc owners s).
  Proof.
    induction fuel as [|fuel IH]; intros dc addresses owners s Class Owners m c ts m' k0 Sound;
      cbn [follow]; destruct (recall m c ts s) as [k1|] eqn:Found.
    1, 3: intros Result; injection Result as <- <-; split; [easy|];
      destruct Sound as [addresses dc m Outcomes _]; now apply Outcomes.
    1: discriminate.
    cbv zeta. set (bits := telling_bits _ _ _). set (bit := dividing _ _).
    destruct (arrive fab rules c dc (s, bits) ts) as [choices|p|] eqn:Arrive; [| |discriminate].
    - destruct (follow_each _ _ _ (follow delivery fab rk rules tests fuel dc owners s)
                  (queue_of fab c ts) dc owners m choices) as [(m1, (bits1, o1))|] eqn:Rest;
        [|discriminate].
      intros Result; injection Result as <- <-.
      destruct (follow_each_sound _ _ _ _ _ _ (IH _ _ _ s Class Owners) Class Owners _ _ _ _ Sound
                  Rest) as (Sound1 & Some_choice & End).
      assert (Ends : ends_so (N.lor bits bits1, o1) addresses s c ts).
      { intros d s' Hd Like. apply fits_both in Like as (Hs & Hs1).
        destruct (End d s' Hd Hs1) as (k & to & Describes & Runs).
        destruct (Class d Hd) as (Member & _).
        destruct (arrive_sound dc (s, bits) d s' Member Hs _ _ _ _ _ (Rules c) Arrive)
          as (Defined & Possible & Only).
        exists k, to. split; [|easy]. constructor; [easy| |].
        - destruct choices as [|outs choices]; [easy|]. exists outs. apply Possible. now left.
        - intros outs Arrives. apply Runs. now apply Only. }
      split; [now apply memo_sound_remember|exact Ends].
    - specialize (parts_of_sound addresses dc m owners (bit p)) as Part.
      destruct (parts_of fab m dc owners (bit p)) as (zero, one) eqn:Parts.
      assert (Zero_part := Part false Sound Owners). assert (One_part := Part true Sound Owners).
      clear Part. unfold part_sound, chosen in Zero_part, One_part. cbn [fst snd] in Zero_part, One_part.
      destruct (follow _ _ _ _ _ fuel (half false dc _) _ _ _ _ _) as [(m1, (bits1, o1))|] eqn:Zero;
        [|discriminate].
      destruct (follow _ _ _ _ _ fuel (half true dc _) _ _ _ _ _) as [(m2, (bits2, o2))|] eqn:One;
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
      { intros d s' Hd Like. apply fits_both in Like as (Like1 & Like2).
        destruct (Class d Hd) as (In_class & Address).
        destruct (halves_contain dc (bit p) d In_class) as ([|] & Member).
        - destruct (One_ends d s') as (k & to & Run & Describes); [easy|easy|].
          exists k, to. split; [easy|]. eapply join_describes; [exact Join|right].
          split; [easy|]. split; [now apply One_owners|easy].
        - destruct (Zero_ends d s') as (k & to & Run & Describes); [easy|easy|].
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

Section Sent.
  Variables (delivery : bool) (fab : fabric) (rk : ranking) (rules : N -> list held)
    (tests : N -> tested) (fuel : nat) (everybody : ranges).
  Hypotheses (Rules : forall c, rules c = tables_of fab c)
    (Everybody : Permutation (members everybody) (hosts fab)) (Once : NoDup (hosts fab)).

  (** What is known of a frame that a host may send. *)
  Definition followed (h d : N) : Prop :=
    ~ undefined fab (from_host fab h) d (mac fab h) []
    /\ (exists outs, arrives fab (from_host fab h) d (mac fab h) [] outs)
    /\ exists k to,
      (forall outs, arrives fab (from_host fab h) d (mac fab h) [] outs -> exists k' to',
         k' <= k /\ (delivery = true -> Permutation to' to)
         /\ runs delivery fab rk d (mac fab h) (queue_of fab (from_host fab h) []) outs k' to')
      /\ (delivery = true -> forall w, wanted fab h d = Some w -> Permutation w to).

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

  Lemma from_one_sound h fuel' : forall dc (addresses : N -> Prop) owners m m',
    (forall d, addresses d -> within dc d) -> has_owners fab addresses owners ->
    memo_sound delivery fab rk addresses dc m ->
    from_one delivery fab rk rules tests fuel fuel' everybody h dc owners m = Some m' ->
    memo_sound delivery fab rk addresses dc m' /\ forall d, addresses d -> followed h d.
  Proof.
    set (own := (mac fab h, N.ones 48)).
    assert (Sent : forall dc (addresses : N -> Prop) owners m m1 bits o choices,
      (forall d, addresses d -> within dc d) -> has_owners fab addresses owners ->
      memo_sound delivery fab rk addresses dc m ->
      arrive fab rules (from_host fab h) dc own [] = Known choices ->
      follow_each delivery fab rk (follow delivery fab rk rules tests fuel dc owners (mac fab h))
        (queue_of fab (from_host fab h) []) dc owners m choices = Some (m1, (bits, o)) ->
      negb delivery || receives fab everybody dc owners h o = true ->
      memo_sound delivery fab rk addresses dc m1 /\ forall d, addresses d -> followed h d).
    { intros dc addresses owners m m1 bits o choices Class Owners Sound Arrive Follow Receives.
      assert (Search := follow_sound delivery fab rk rules tests Rules fuel dc
                          addresses owners (mac fab h) Class Owners).
      destruct (follow_each_sound _ _ _ _ _ _ _ _ _ Search Class Owners _ _ _ _ Sound Follow)
        as (Sound1 & Some_choice & End).
      split; [easy|]. intros d Address.
      destruct (End d (mac fab h) Address (fits_self _ _)) as (k & to & Describes & Runs).
      destruct (Class d Address) as (Member & _).
      destruct (arrive_sound dc own d (mac fab h) Member (fits_self _ _) _ _ _ _ _ (Rules _) Arrive)
        as (Defined & Possible & Only).
      split; [easy|]. split.
      - destruct choices as [|outs choices]; [easy|]. exists outs. apply Possible. now left.
      - exists k, to. split; [intros outs Arrives; apply Runs; now apply Only|].
        intros Delivery. rewrite Delivery in Receives.
        exact (receives_sound dc owners h o d to Member (Owners d Address) Receives Describes Delivery). }
    induction fuel' as [|fuel' IH]; intros dc addresses owners m m' Class Owners Sound;
      cbn [from_one]; cbv zeta; fold own;
      destruct (arrive fab rules (from_host fab h) dc own []) as [choices|p|] eqn:Arrive;
      try discriminate.
    1, 2: destruct (follow_each delivery fab rk _ _ _ _ m choices) as [(m1, (bits, o))|] eqn:Follow;
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
    forall h, In h senders -> forall d, addresses d -> followed h d.
  Proof.
    intros Class Owners. induction senders as [|h senders IH]; [easy|].
    intros m Sound. cbn [from_hosts].
    destruct (from_one _ _ _ _ _ _ _ _ h dc owners _) as [m1|] eqn:One; [|discriminate].
    intros Rest. eapply from_one_sound in One as (Sound1 & Followed); try eassumption.
    intros h' [<-|Member]; [exact Followed|]. now apply (IH m1).
  Qed.

  Lemma check_class_sound dc :
    check_class delivery fab rk rules tests fuel everybody dc = true ->
    forall d h, within dc d -> In h (hosts fab) -> followed h d.
  Proof.
    unfold check_class. intros Check d h Within Host.
    assert (Owners : has_owners fab (within dc) (owners_in fab dc (hosts fab))).
    { intros d' (Member & Address).
      now apply (has_owners_in fab (fun d => d <= N.ones 48) dc (hosts fab)). }
    eapply from_hosts_sound with (addresses := within dc) in Check; eauto.
    now apply memo_sound_empty.
  Qed.
End Sent.

(** * The network *)

Section Network.
  Variables (delivery : bool) (fab : fabric) (rk : ranking) (room : N -> nat) (addresses : N -> Prop).
  Hypothesis (K : forall h d, In h (hosts fab) -> addresses d -> followed delivery fab rk h d).

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

  Lemma inject_keeps s s' n : invariant s n -> inject fab addresses s s' ->
    exists n', invariant s' n'.
  Proof.
    intros (fates & rec & F & T & Delivering) I.
    destruct I as [l lg st h d outs Host Address Arrives]; subst; cbn in *.
    destruct (K h d Host Address) as (_ & _ & most & receivers & Runs & Wanted).
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

  Lemma reachable_invariant s : reachable fab room addresses s -> exists n, invariant s n.
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

  Lemma sending l lg st h d : In h (hosts fab) -> addresses d ->
    exists s', inject fab addresses (State l lg st) s' /\ sent s' = (h, (d, mac fab h)) :: st.
  Proof.
    intros I D. destruct (K h d I D) as (_ & (outs & A) & _). eexists. split.
    - econstructor; eassumption.
    - reflexivity.
  Qed.

  Lemma always_defined s i c ts : reachable fab room addresses s -> In i (items s) ->
    In (ToChannel c, ts) (pending i) -> ~ undefined fab c (i_dst i) (i_src i) ts.
  Proof.
    intros R I J. apply reachable_invariant in R as (n & fates & rec & F & _).
    apply in_split in I as (l1 & l2 & E). rewrite E in F.
    apply Forall2_middle in F as (f1 & (k, to) & f2 & -> & F1 & Fi & F2).
    unfold fate_of in Fi. apply in_split in J as (p1 & p2 & E2). rewrite E2 in Fi.
    apply runs_split_channel in Fi as (_ & _ & kc & tc & _ & C & _). now destruct C.
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

  Lemma delivered s : delivery = true -> reachable fab room addresses s -> items s = [] ->
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

Lemma followed_deadlock_free delivery fab rk (addresses : N -> Prop) :
  (forall h d, In h (hosts fab) -> addresses d -> followed delivery fab rk h d) ->
  deadlock_free fab addresses.
Proof.
  intros K. split; intros.
  - now apply sending with (delivery := delivery) (rk := rk).
  - now destruct (K h d).
  - now apply always_defined with (delivery := delivery) (rk := rk) (room := room)
      (addresses := addresses) (s := s).
  - now apply no_deadlock with (delivery := delivery) (rk := rk) (room := room)
      (addresses := addresses).
  - now apply progress with (delivery := delivery) (rk := rk) (addresses := addresses).
  - now apply settled with (delivery := delivery) (rk := rk) (addresses := addresses).
Qed.

Lemma followed_safe fab rk (addresses : N -> Prop) :
  (forall h d, In h (hosts fab) -> addresses d -> followed true fab rk h d) -> safe fab addresses.
Proof.
  intros K. split; [now apply followed_deadlock_free with true rk|]. intros.
  now apply delivered with (delivery := true) (rk := rk) (room := room) (addresses := addresses).
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

Lemma checked_followed delivery fab rk fuel channels classes :
  check delivery fab rk fuel channels classes = true ->
  forall h d c, In h (hosts fab) -> In c classes -> within c d -> followed delivery fab rk h d.
Proof.
  unfold check. cbv zeta. rewrite andb_true_iff, forallb_forall.
  intros (Ascending & Checked) h d c Host Class Within. assert (Sorted := NSort.Permuted_sort (hosts fab)).
  eapply check_class_sound with (4 := Checked c Class); [| | |exact Within|exact Host].
  - intros c'. apply prepared_sound.
  - now rewrite members_all, <- Sorted.
  - apply (Permutation_NoDup (Permutation_sym Sorted)). now apply ascending_once.
Qed.

Lemma small d : d < 2 ^ 48 -> d <= N.ones 48.
Proof. intros D. change (N.ones 48) with (N.pred (2 ^ 48)). now apply N.lt_le_pred. Qed.

Definition in_classes (classes : list class) (d : N) : Prop :=
  d < 2 ^ 48 /\ exists c, In c classes /\ in_class c d = true.

Lemma check_followed delivery fab rk fuel channels classes :
  check delivery fab rk fuel channels classes = true ->
  forall h d, In h (hosts fab) -> in_classes classes d -> followed delivery fab rk h d.
Proof.
  intros Checked h d Host (Address & c & Class & Member).
  apply (checked_followed _ _ _ _ _ _ Checked h d c Host Class). split; [easy|now apply small].
Qed.

(** Of frames to the addresses of some classes. *)
Theorem check_sound fab rk fuel channels classes :
  check true fab rk fuel channels classes = true -> safe fab (in_classes classes).
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

Lemma check_all_followed delivery fab rk fuel channels classes :
  check_all delivery fab rk fuel channels classes = true ->
  forall h d, In h (hosts fab) -> d < 2 ^ 48 -> followed delivery fab rk h d.
Proof.
  unfold check_all. rewrite !andb_true_iff. intros (((Small & Exceptions) & Cover) & Checked).
  intros h d Host Address.
  assert (Some_class : exists c, In c classes /\ in_class c d = true).
  { destruct (cover_sound 48 _ d Cover) as (p & Cube & Bits).
    apply in_map_iff in Cube as (c & <- & Class).
    apply in_some_class with c; auto.
    apply fits_spec. intros i Mask. apply Bits; [|easy].
    rewrite forallb_forall in Small. specialize (Small c Class). apply N.leb_le in Small.
    destruct (N.lt_ge_cases i (N.of_nat 48)) as [Low|High]; [easy|].
    rewrite <- (N.mod_small (snd (fst c)) (2 ^ 48)) in Mask.
    - rewrite N.mod_pow2_bits_high in Mask; [discriminate|easy].
    - apply N.le_lt_trans with (1 := Small). reflexivity. }
  destruct Some_class as (c & Class & Member).
  apply (check_followed _ _ _ _ _ _ Checked h d Host). split; [easy|]. now exists c.
Qed.

(** Of frames to any address, wherever they arrive. *)
Theorem check_all_deadlock_free delivery fab rk fuel channels classes :
  check_all delivery fab rk fuel channels classes = true -> deadlock_free fab (fun d => d < 2 ^ 48).
Proof.
  intros Checked. apply followed_deadlock_free with delivery rk.
  now apply check_all_followed with fuel channels classes.
Qed.

(** The same, and they arrive. *)
Theorem check_all_sound fab rk fuel channels classes :
  check_all true fab rk fuel channels classes = true -> safe fab (fun d => d < 2 ^ 48).
Proof.
  intros Checked. apply followed_safe with rk.
  now apply check_all_followed with fuel channels classes.
Qed.

Print Assumptions check_sound.
Print Assumptions check_all_sound.
Print Assumptions check_all_deadlock_free.
