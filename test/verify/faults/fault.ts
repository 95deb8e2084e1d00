import type { OutsideId } from '../../../src/verify/promises.ts'
import type { Answer, Endpoint, Incoming, Reply } from '../exchange.ts'
import type { Tokens } from '../tokens.ts'
import type { Limit, Now, Windows } from '../windows.ts'

/** What a fault can reach of the server that has it. */
export interface Inside {
  readonly tokens: Tokens
  readonly now: Now
  readonly windows: Readonly<Record<Endpoint, Windows>>
  endpointOf(request: Incoming): Endpoint
  keyOf(request: Incoming): string
  /** What a fault remembers: each server has its own. */
  readonly memory: Map<unknown, unknown>
}

/** Stands in front of a step of the server: it may change the request, answer itself, or change the reply. */
export type Layer = (request: Incoming, next: Answer, inside: Inside) => Reply | Promise<Reply>

/** Promises, and for each what `postern verify` must say that came. */
export type Breaks = Partial<Readonly<Record<OutsideId, RegExp>>>

/** One deviation from the documented API: a row. */
export interface Fault {
  /** In words, with the server as the subject. */
  readonly does: string
  /** Every promise that it breaks. */
  readonly breaks: Breaks
  /** The promises that become not testable, and why. */
  readonly untestable?: Breaks
  /** Promises that it breaks as well if a run happens to meet it there. */
  readonly alsoBreaks?: readonly OutsideId[]
  /** The server under which it shows; default: cleartext HTTP/1.1, refresh tokens kept. */
  readonly server?: { readonly tls?: true; readonly rotate?: true; readonly revocationPath?: string }
  /** The shortest run that shows it: without waits for windows (default), with them, or with floods, too. */
  readonly run?: 'windows' | 'complete'
  /** Around the whole server: before a request is counted, and after its reply has the limit fields. */
  readonly exchange?: Layer
  /** Behind the limit: around the token endpoint and the API. */
  readonly answer?: Layer
  /** The key of a request's window, in place of the client's address. */
  readonly key?: (request: Incoming, inside: Inside) => string
  /** In place of fixed windows. */
  readonly windows?: (limit: Limit, now: Now) => Windows
}
