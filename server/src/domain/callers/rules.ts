// The types of all rules: for each operation of the contract a function from its input and caller to its
// answer. A rule that breaks its promise does not compile.
import type { Access } from '@hawser/contract/access'
import type { Contract } from '@hawser/contract'
import type { Input, Operation, Output } from '@hawser/contract/operation'
import type { AnonymousCaller, DeviceCaller, KeyCaller, MemberCaller, UserCaller } from './callers.ts'

export type CallerFor<A extends Access> = A extends { who: 'anyone' }
  ? AnonymousCaller
  : A extends { who: 'user' }
    ? UserCaller
    : A extends { who: 'user-or-key' }
      ? UserCaller | KeyCaller
      : A extends { who: 'member' }
        ? MemberCaller
        : A extends { who: 'device' }
          ? DeviceCaller
          : MemberCaller | DeviceCaller

/** The request behind a call, with which long work ends. */
export interface CallEnd {
  /** Aborted when the caller has left. */
  readonly signal: AbortSignal
}

export type Rule<O extends Operation> = (
  input: Input<O>,
  caller: CallerFor<O['access']>,
  end?: CallEnd,
) => Promise<Output<O>> | Output<O>

export type Rules<N extends keyof Contract> = {
  readonly [V in keyof Contract[N]]: Contract[N][V] extends Operation ? Rule<Contract[N][V]> : never
}

export type AllRules = { readonly [N in keyof Contract]: Rules<N> }
