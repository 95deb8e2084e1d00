import type { Socket } from 'node:net'
import type { Http1RequestHead } from '../../src/http1/request-head.ts'
import type { Http1Body } from '../../src/listen/http1/body.ts'
import { Http1Intake } from '../../src/listen/http1/intake.ts'

/** A message as the sidecar's reader understands it. */
interface ReadMessage {
  readonly head: Http1RequestHead
  /** Latin-1. */
  readonly body: string
  readonly whole: boolean
}

export interface Reading {
  readonly messages: readonly ReadMessage[]
  /** Bytes behind the last message. */
  readonly left: number
  /** What the rest was refused for, `broken` for a body, or undefined. */
  readonly fault: string | undefined
}

const SOCKET = { destroyed: false, pause() {}, resume() {} } as unknown as Socket // the intake asks no more of it

/**
 * Gives the reader of the public listener these pieces one after the other, as if they came from a socket, and returns
 * what it makes of them; at most so many messages.
 */
export async function readInPieces(
  pieces: readonly Buffer[],
  { most = 100, maxHeaderSize = 1 << 20 }: { readonly most?: number; readonly maxHeaderSize?: number } = {},
): Promise<Reading> {
  const messages: { head: Http1RequestHead; body: Promise<string>; whole: boolean }[] = []
  let fault: string | undefined
  const intake = new Http1Intake(SOCKET, maxHeaderSize, {
    get mayBegin() {
      return fault === undefined && messages.length < most
    },
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
      bodies.at(-1)?.drop()
    },
    refuse({ kind }) {
      fault = kind
    },
  })
  const bodies: Http1Body[] = []
  async function collect(body: Http1Body | undefined): Promise<string> {
    if (body === undefined) return ''
    bodies.push(body)
    let text = ''
    try {
      for await (const piece of body.within(60_000)) text += piece.toString('latin1')
    } catch {
      // Broken, or dropped below.
    }
    return text
  }
  for (const piece of pieces) {
    intake.receive(piece)
    // Whoever reads the body has his turn.
    await undefined
  }
  const left = intake.stop().length
  await new Promise(setImmediate)
  for (const body of bodies) body.drop()
  return {
    messages: await Promise.all(
      messages.map(async ({ head, body, whole }) => ({ head, body: await body, whole })),
    ),
    left,
    fault,
  }
}

/** What a reading comes to: a body that turns out broken may have been handed on up to any byte before that. */
export function gistOf({ messages, fault }: Reading): unknown {
  return {
    fault,
    messages: messages.map(({ head, body, whole }) => ({ head, whole, body: whole ? body : undefined })),
  }
}
