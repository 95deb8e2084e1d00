/** What the owner of a server can rely on while `postern verify` checks it. */
export const VERIFYING = {
  H126: '`postern verify` says beforehand what it sends, and keeps to it. To the API it sends only GET, HEAD and OPTIONS, for one path and other spellings of it. The right password never goes into a URL.',
  H127: '`postern verify` finds each fault of `test/verify/faults` and of the real servers there, and nothing else.',
} as const satisfies Readonly<Record<`H${number}`, string>>
