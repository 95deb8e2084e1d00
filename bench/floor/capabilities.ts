/** What the floor can do besides forwarding, in the order in which the table adds it. */
export const CAPABILITIES = [
  'deadlines',
  'caps',
  'strict',
  'policy',
  'queue',
  'live',
  'metrics',
  'log',
  'batch',
] as const

export type Capability = (typeof CAPABILITIES)[number]

/** Descriptions for the table. */
export const MEANINGS: Readonly<Record<Capability, string>> = {
  deadlines: 'idle client, late response, stalled body',
  caps: 'connections, size of a head, unread responses',
  strict: 'heads read and written by src/http1',
  policy: 'requestFields and responseFields, request ids',
  queue: 'the queue for the device',
  live: 'the list of live exchanges',
  metrics: 'two histograms, counters',
  log: 'an access line',
  batch: 'one write for all messages of an event-loop turn',
}

/** Reads a comma-separated list of names. Throws for a name that is not in `CAPABILITIES`. */
export function readCapabilities(text: string): ReadonlySet<Capability> {
  return new Set(text === '' ? [] : text.split(',').map(capabilityOf))
}

function capabilityOf(name: string): Capability {
  const found = CAPABILITIES.find((capability) => capability === name)
  if (found === undefined)
    throw new Error(`no such capability: ${name}; there are ${CAPABILITIES.join(', ')}`)
  return found
}
