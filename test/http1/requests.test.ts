import { join } from 'node:path'
import { expect } from 'vitest'
import { inside, runCases } from '../support/cases.ts'
import { bytesOf, shownBytes } from '../support/shown-bytes.ts'
import { readInPieces } from './intake.ts'
import { readRowByNode } from './nodes-reading.ts'
import { shownFields } from './shown-fields.ts'

/** A message as one of the two readers finds it. */
interface Found {
  readonly method: string | undefined
  readonly target: string | undefined
  readonly version: string
  readonly fields: readonly string[]
  /** Undefined if the body is incomplete. */
  readonly body: string | undefined
  readonly leaves: boolean
  readonly expects: boolean
  readonly persists: boolean
}

interface Reading {
  /** A line for each message, then `refused` or `more`. */
  readonly text: string
  /** The part on which two readers must agree. It omits the head of a message that is refused: only one of them may report it. */
  readonly agreed: string
}

function lineOf({ method, target, version, fields, body, leaves, expects, persists }: Found): string {
  const parts = [shownBytes(`${method} ${target}`), version, shownFields(fields)]
  if (expects) parts.push('expects')
  if (leaves) parts.push('leaves HTTP')
  else if (body !== undefined) parts.push(`"${shownBytes(body)}"`, ...(persists ? [] : ['closes']))
  return parts.join(' ')
}

function readingOf(messages: readonly Found[], refused: boolean, withinHead: boolean): Reading {
  const last = messages.at(-1)
  const open = last !== undefined && last.body === undefined && !last.leaves
  const end = refused ? ['refused'] : []
  const waits = !refused && (open || withinHead) ? ['more'] : []
  const compared = open && refused ? messages.slice(0, -1) : messages
  return {
    text: [...messages.map(lineOf), ...end, ...waits].join('\n'),
    agreed: [...compared.map(lineOf), ...end].join('\n'),
  }
}

/** The reading of the sidecar. Its connections read nothing after a message that ends them. */
async function readBySidecar(pieces: readonly Buffer[]): Promise<Reading> {
  const { messages, left, fault } = await readInPieces(pieces)
  const found = messages.map(({ head, body, whole }) => ({
    ...head,
    leaves: head.leavesHttp,
    body: whole ? body : undefined,
  }))
  const last = found.findIndex(({ leaves, persists, body }) => leaves || (!persists && body !== undefined))
  if (last >= 0) return readingOf(found.slice(0, last + 1), false, false)
  return readingOf(found, fault !== undefined, left > 0)
}

/** The reading of llhttp in Node, which does not report whether half a head has arrived. */
async function readByLlhttp(bytes: Buffer): Promise<Reading> {
  const { messages, fault } = await readRowByNode(bytes)
  const found = messages.map(({ event, ...message }) => ({
    ...message,
    leaves: event === 'upgrade' || event === 'connect',
    expects: event.startsWith('check'),
  }))
  return readingOf(found, fault !== undefined, false)
}

/** Follows a case whose last request keeps its connection: it must begin at the same byte for both readers. */
const NEXT = Buffer.from('GET /next HTTP/1.1\r\n\r\n')
const NEXT_READ = '\nGET /next 1.1 {} ""'

runCases(join(import.meta.dirname, 'requests'), {
  given: ['around', 'bytes'],
  results: ['reads'],
  remarks: ['unlike'],
  async play({ around, bytes: shown = '', unlike }) {
    const bytes = bytesOf(inside(around, shown))
    const here = await readBySidecar([bytes])
    expect(await readBySidecar(Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual(here)
    const there = await readByLlhttp(bytes)
    if (unlike === undefined)
      expect(there.agreed, 'llhttp differs: say behind `unlike` why').toBe(here.agreed)
    else expect(there.agreed, 'llhttp agrees: remove `unlike`').not.toBe(here.agreed)
    if (unlike === undefined && here.text.endsWith('"')) {
      const longer = Buffer.concat([bytes, NEXT])
      expect((await readBySidecar([longer])).text).toBe(here.text + NEXT_READ)
      expect((await readByLlhttp(longer)).text).toBe(here.text + NEXT_READ)
    }
    return { reads: here.text }
  },
})
