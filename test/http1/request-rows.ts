import { describe, expect, it } from 'vitest'
import { readInPieces } from '../support/http1-intake.ts'
import { readRowByNode } from '../support/nodes-reading.ts'

/**
 * One behaviour of a request parser. The rows cover the cases in the tests of llhttp and in the bug list of HTTP Garden; the
 * bytes are our own.
 */
export interface RequestRow {
  /** The object of a sentence: `the sidecar refuses NAME`. */
  readonly name: string
  /** Latin-1. */
  readonly bytes: string
  /**
   * The requests that the sidecar reads, each as `METHOD target version {fields} "body"`, then `refused` if it refuses the rest,
   * or `more` if it waits for more bytes.
   */
  readonly reads: string
  /** Why the sidecar reads the bytes differently from llhttp: the clause, or the attack. */
  readonly departs?: string
}

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
  readonly text: string
  /** The part on which two readers must agree. It omits the head of a message that is refused: only one of them may report it. */
  readonly agreed: string
}

/** Header fields in the notation of the rows. */
export function fieldsText(fields: readonly string[]): string {
  return `{${fields.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${fields[i + 1]}`] : [])).join('; ')}}`
}

function messageText({ method, target, version, fields, body, leaves, expects, persists }: Found): string {
  const parts = [method, target, version, fieldsText(fields)]
  if (expects) parts.push('expects')
  if (leaves) parts.push('leaves HTTP')
  else if (body !== undefined) parts.push(JSON.stringify(body), ...(persists ? [] : ['closes']))
  return parts.join(' ')
}

function readingOf(messages: readonly Found[], refused: boolean, withinHead: boolean): Reading {
  const last = messages.at(-1)
  const open = last !== undefined && last.body === undefined && !last.leaves
  const end = refused ? ['refused'] : []
  const waits = !refused && (open || withinHead) ? ['more'] : []
  const compared = open && refused ? messages.slice(0, -1) : messages
  return {
    text: [...messages.map(messageText), ...end, ...waits].join(', '),
    agreed: [...compared.map(messageText), ...end].join(', '),
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

/** Follows a row whose last request keeps its connection: it must begin at the same byte for both readers. */
const NEXT = 'GET /next HTTP/1.1\r\n\r\n'
const NEXT_READ = ', GET /next 1.1 {} ""'

function sentenceOf({ name, reads, departs }: RequestRow): string {
  const verb = reads.endsWith('refused')
    ? 'refuses'
    : reads.endsWith('more')
      ? 'waits for more after'
      : 'reads'
  return `${verb} ${name}, ${departs === undefined ? 'as llhttp does' : 'unlike llhttp'}`
}

/** Compares the sidecar with each row, and with llhttp unless the row has a reason to differ. */
export function describeRequests(title: string, rows: readonly RequestRow[]): void {
  describe(title, () => {
    it.each(rows.map((row) => [sentenceOf(row), row] as const))(
      'H96 C20 the sidecar %s',
      async (_what, row) => {
        const bytes = Buffer.from(row.bytes, 'latin1')
        const here = await readBySidecar([bytes])
        expect(here.text).toBe(row.reads)
        expect(await readBySidecar(Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual(here)
        const there = await readByLlhttp(bytes)
        if (row.departs !== undefined) {
          expect(there.agreed, 'llhttp agrees now: remove `departs`').not.toBe(here.agreed)
          return
        }
        expect(there.agreed).toBe(here.agreed)
        if (!row.reads.endsWith('"')) return
        const longer = Buffer.concat([bytes, Buffer.from(NEXT)])
        expect((await readBySidecar([longer])).text).toBe(row.reads + NEXT_READ)
        expect((await readByLlhttp(longer)).text).toBe(row.reads + NEXT_READ)
      },
    )
  })
}
