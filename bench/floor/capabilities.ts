/** What the floor can do besides forwarding, in the order in which the table adds it: each comes with those before it. */
export const MEANINGS = {
  deadlines: 'idle client, late response, stalled body',
  caps: 'connections, size of a head, unread responses',
  strict: 'heads read and written by src/http1',
  policy: 'requestFields and responseFields, request ids',
  queue: 'the queue for the device',
  live: 'the list of live exchanges',
  metrics: 'two histograms, counters',
  log: 'an access line',
  batch: 'one write for all messages of an event-loop turn',
} as const

export type Capability = keyof typeof MEANINGS

export const CAPABILITIES = Object.keys(MEANINGS) as readonly Capability[] // of an object with these keys

/** The capabilities up to the one that is named; none for an empty name. Throws for a name that is not in `CAPABILITIES`. */
export function capabilitiesUpTo(last: string): ReadonlySet<Capability> {
  const count = (CAPABILITIES as readonly string[]).indexOf(last) + 1
  if (count === 0 && last !== '')
    throw new Error(`no such capability: ${last}; there are ${CAPABILITIES.join(', ')}`)
  return new Set(CAPABILITIES.slice(0, count))
}
