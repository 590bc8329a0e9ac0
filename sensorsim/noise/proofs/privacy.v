(* ---- A record: `release` values with independent words, so their likelihoods multiply *)
Fixpoint likelihood (x : list Z) (s : list output) : Z :=
  match x, s with a :: x', t :: s' => words a t * likelihood x' s' | _, _ => 1 end.
Definition input (x : Z) : Prop := 0 <= x <= one.

Lemma record_ratio : forall x y s, length x = length s -> length y = length s ->
  Forall input x -> Forall input y -> Forall valid s ->
  0 <= likelihood x s /\ 0 <= likelihood y s /\
  denominator ^ Z.of_nat (length s) * likelihood x s <= numerator ^ Z.of_nat (length s) * likelihood y s.
Proof.
  induction x as [|a x IH]; intros y s Hx Hy Fx Fy Fs; destruct s as [|t s]; try discriminate Hx;
    destruct y as [|b y]; try discriminate Hy; cbn [likelihood length].
  - simpl. lia.
  - inversion Fx; inversion Fy; inversion Fs; subst. injection Hx as Hx. injection Hy as Hy.
    destruct (IH y s Hx Hy) as [P [Q R]]; try assumption.
    pose proof (words_nonnegative a t ltac:(assumption) ltac:(assumption)).
    pose proof (words_nonnegative b t ltac:(assumption) ltac:(assumption)).
    pose proof (likelihood_ratio a b t ltac:(assumption) ltac:(assumption) ltac:(assumption)) as L.
    rewrite Nat2Z.inj_succ, !Z.pow_succ_r by lia.
    set (d := denominator ^ Z.of_nat (length s)) in *. set (n := numerator ^ Z.of_nat (length s)) in *.
    split; [nia|split; [nia|]].
    replace (denominator * d * (words a t * likelihood x s)) with ((denominator * words a t) * (d * likelihood x s)) by ring.
    replace (numerator * n * (words b t * likelihood y s)) with ((numerator * words b t) * (n * likelihood y s)) by ring.
    assert (0 <= d) by (apply Z.pow_nonneg; vm_compute; discriminate).
    assert (0 <= denominator) by (vm_compute; discriminate).
    apply Z.mul_le_mono_nonneg; nia.
Qed.

(* ---- exp of the printed epsilon from below: (1 + epsilon/2^64)^(2^64) in integers, rounded down at each squaring *)
Definition bits : Z := 192.
Definition unit : Z := 2 ^ bits.
Definition halvings : nat := 64.
Definition start : Z := unit + epsilon_digits * 2 ^ (bits - 64) / 10 ^ 12.
Fixpoint square (n : nat) (a : Z) : Z := match n with O => a | S m => square m (a * a / unit) end.

Lemma below_exp : numerator ^ Z.of_nat release * unit <= denominator ^ Z.of_nat release * square halvings start.
Proof. vm_compute. discriminate. Qed.

Open Scope R_scope.
Definition epsilon : R := IZR epsilon_digits / 10 ^ 12.

Lemma unit_positive : 0 < IZR unit.
Proof. apply IZR_lt. reflexivity. Qed.

Lemma square_below : forall n a t, (0 <= a)%Z -> IZR a / IZR unit <= exp t -> IZR (square n a) / IZR unit <= exp (t * 2 ^ n).
Proof.
  induction n as [|n IH]; intros a t Ha H; simpl square.
  - simpl. replace (t * 1) with t by ring. exact H.
  - replace (t * 2 ^ S n) with ((t + t) * 2 ^ n) by (simpl; ring).
    apply IH; [apply Z.div_pos; [nia|reflexivity]|].
    rewrite exp_plus. assert (Hu := unit_positive).
    assert (Hd : IZR (a * a / unit) <= IZR a * IZR a / IZR unit).
    { apply Rmult_le_reg_l with (IZR unit); [exact Hu|].
      replace (IZR unit * (IZR a * IZR a / IZR unit)) with (IZR a * IZR a) by (field; lra).
      rewrite <- !mult_IZR. apply IZR_le. apply Z.mul_div_le. reflexivity. }
    apply Rle_trans with ((IZR a / IZR unit) * (IZR a / IZR unit)).
    + replace ((IZR a / IZR unit) * (IZR a / IZR unit)) with ((IZR a * IZR a / IZR unit) / IZR unit) by (field; lra).
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; exact Hu|exact Hd].
    + apply Rmult_le_compat; try exact H;
        apply Rmult_le_pos; try (apply IZR_le; exact Ha); left; apply Rinv_0_lt_compat; exact Hu.
Qed.

Lemma start_below : IZR start / IZR unit <= exp (epsilon / 2 ^ halvings).
Proof.
  assert (Hu := unit_positive).
  apply Rle_trans with (1 + epsilon / 2 ^ halvings); [|exact (exp_ineq1_le _)].
  apply Rmult_le_reg_r with (IZR unit); [exact Hu|].
  replace (IZR start / IZR unit * IZR unit) with (IZR start) by (field; lra).
  unfold start. rewrite plus_IZR.
  assert (IZR (epsilon_digits * 2 ^ (bits - 64) / 10 ^ 12) <= epsilon / 2 ^ halvings * IZR unit); [|lra].
  assert (E : epsilon / 2 ^ halvings * IZR unit = IZR (epsilon_digits * 2 ^ (bits - 64)) / 10 ^ 12).
  { unfold epsilon. replace (IZR unit) with (2 ^ halvings * IZR (2 ^ (bits - 64))).
    - rewrite mult_IZR. field. apply pow_nonzero. lra.
    - unfold halvings. rewrite pow_IZR. rewrite <- mult_IZR. reflexivity. }
  rewrite E. apply Rmult_le_reg_l with (10 ^ 12); [lra|].
  replace (10 ^ 12 * (IZR (epsilon_digits * 2 ^ (bits - 64)) / 10 ^ 12))
    with (IZR (epsilon_digits * 2 ^ (bits - 64))) by (field; lra).
  replace (10 ^ 12) with (IZR (10 ^ 12)) by (simpl; lra).
  rewrite <- mult_IZR. apply IZR_le. apply Z.mul_div_le. reflexivity.
Qed.

Lemma ratio_below_exp : forall n d : Z, (0 <= d)%Z -> (n * unit <= d * square halvings start)%Z ->
  IZR n <= exp epsilon * IZR d.
Proof.
  intros n d D B. assert (Hu := unit_positive).
  assert (H := square_below halvings start (epsilon / 2 ^ halvings) ltac:(vm_compute; discriminate) start_below).
  replace (epsilon / 2 ^ halvings * 2 ^ halvings) with epsilon in H by (field; apply pow_nonzero; lra).
  generalize dependent (square halvings start). intros e B H.
  apply IZR_le in B, D. rewrite !mult_IZR in B.
  assert (S : IZR e <= exp epsilon * IZR unit).
  { apply Rmult_le_reg_r with (/ IZR unit); [apply Rinv_0_lt_compat; exact Hu|].
    replace (exp epsilon * IZR unit * / IZR unit) with (exp epsilon) by (field; lra). exact H. }
  apply Rmult_le_reg_r with (IZR unit); [exact Hu|].
  apply Rle_trans with (IZR d * IZR e); [exact B|].
  replace (exp epsilon * IZR d * IZR unit) with (IZR d * (exp epsilon * IZR unit)) by ring.
  apply Rmult_le_compat_l; assumption.
Qed.

Lemma denominators_positive : (0 < denominator ^ Z.of_nat release)%Z.
Proof. vm_compute. reflexivity. Qed.

(* The certificate: a record is epsilon-DP with delta = 0, for any two records and all that is released of them. *)
Theorem certificate : forall x y s, length x = release -> length y = release -> length s = release ->
  Forall input x -> Forall input y -> Forall valid s ->
  IZR (likelihood x s) <= exp epsilon * IZR (likelihood y s).
Proof.
  intros x y s Hx Hy Hs Fx Fy Fs.
  destruct (record_ratio x y s) as [P [Q R]]; try assumption; try congruence. rewrite Hs in R.
  assert (D := denominators_positive). assert (E := ratio_below_exp _ _ (Z.lt_le_incl _ _ D) below_exp).
  generalize dependent (denominator ^ Z.of_nat release)%Z. generalize dependent (numerator ^ Z.of_nat release)%Z.
  intros n d R D E. apply IZR_le in R, Q. apply IZR_lt in D. rewrite !mult_IZR in R.
  apply Rmult_le_reg_l with (IZR d); [exact D|].
  apply Rle_trans with (IZR n * IZR (likelihood y s)); [exact R|].
  replace (IZR d * (exp epsilon * IZR (likelihood y s))) with ((exp epsilon * IZR d) * IZR (likelihood y s)) by ring.
  apply Rmult_le_compat_r; assumption.
Qed.
Print Assumptions certificate.
