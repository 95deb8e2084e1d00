import type { Socket } from 'node:net'
import type { Http1RequestHead } from '../../src/http1/request-head.ts'
import { Http1Intake } from '../../src/listen/http1/intake.ts'
import type { RequestBody } from '../../src/listen/request-body.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { stillClock } from '../support/clock.ts'

/** A message as the sidecar parses it. */
interface ReadMessage {
  readonly head: Http1RequestHead
  /** Latin-1. */
  readonly body: string
  readonly whole: boolean
}

export interface Reading {
  readonly messages: readonly ReadMessage[]
  /** How many bytes follow the last message. */
  readonly left: number
  /** Why the rest was refused (`broken` for a body), or undefined. */
  readonly fault: string | undefined
}

const SOCKET = { destroyed: false, pause() {}, resume() {} } as unknown as Socket // all that the intake uses

const FACTS = { secure: false, peer: '', localPort: 0, redirects: false }

/**
 * Feeds these pieces to the HTTP/1 parser of the public listener one by one, as if they came from a socket, and returns
 * what it parsed.
 * @param options.most the parser stops after this number of messages
 */
export async function readInPieces(
  pieces: readonly Buffer[],
  { most = 100, maxHeaderSize = 1 << 20 }: { readonly most?: number; readonly maxHeaderSize?: number } = {},
): Promise<Reading> {
  const messages: { head: Http1RequestHead; body: Promise<string>; whole: boolean }[] = []
  let fault: string | undefined
  const intake = new Http1Intake(
    SOCKET,
    FACTS,
    { clock: stillClock(), maxHeaderSize },
    {
      get mayBegin() {
        return fault === undefined && messages.length < most
      },
      mayRead: () => true,
      mayTakeMore: () => true,
      awaitHead() {},
      begin(head, body) {
        messages.push({ head, body: collect(body), whole: body?.unread !== true })
      },
      bodyRead() {
        const last = messages.at(-1)
        if (last !== undefined) last.whole = true
      },
      bodyBroken() {
        fault = 'broken'
        bodies.at(-1)?.discard()
      },
      waits() {},
      keepsHead() {},
      refuse({ kind }) {
        fault = kind
      },
    },
  )
  const bodies: RequestBody[] = []
  async function collect(body: RequestBody | undefined): Promise<string> {
    if (body === undefined) return ''
    bodies.push(body)
    let text = ''
    try {
      for await (const piece of body.within(60_000)) text += piece.toString('latin1')
    } catch {
      // The body is broken, or dropped below.
    }
    return text
  }
  for (const piece of pieces) {
    intake.receive(piece)
    // The reader of the body runs before the next piece arrives.
    await undefined
  }
  const left = intake.stop().length
  await nextTurn()
  for (const body of bodies) body.discard()
  return {
    messages: await Promise.all(
      messages.map(async ({ head, body, whole }) => ({ head, body: await body, whole })),
    ),
    left,
    fault,
  }
}

/** What two readings of the same bytes must have in common: how much of a broken body was passed on may differ. */
export function gistOf({ messages, fault }: Reading): unknown {
  return {
    fault,
    messages: messages.map(({ head, body, whole }) => ({ head, whole, body: whole ? body : undefined })),
  }
}
