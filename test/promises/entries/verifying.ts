import type { Promised } from '../promised.ts'

/** What the owner of a server can rely on while `postern verify` checks it. */
export const VERIFYING = {
  H126: {
    sentence:
      '`postern verify` says beforehand what it sends, and keeps to it. To the API it sends only GET, HEAD and OPTIONS, for one path and other spellings of it. The right password never goes into a URL.',
    reason: 'decision: a check of a device in use must not change it',
  },
  H127: {
    sentence:
      '`postern verify` finds each fault of `test/verify/faults` and of the real servers there, and nothing else.',
    reason: 'a check that cannot fail proves nothing, and one that cries wolf is switched off',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
