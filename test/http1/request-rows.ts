import { describe, expect, it } from 'vitest'
import { readInPieces } from '../support/http1-intake.ts'
import { readRowByNode } from '../support/nodes-reading.ts'

/**
 * One behaviour of a parser of requests. The rows cover what the tests of llhttp and HTTP Garden's list of bugs name, with bytes
 * of our own.
 */
export interface RequestRow {
  readonly name: string
  /** Latin-1. */
  readonly bytes: string
  /**
   * The requests that the sidecar's reader finds, each as `METHOD target version {fields} "body"`, and how it ends: `refused`,
   * or `more` where it waits for more bytes.
   */
  readonly reads: string
  /** Why llhttp reads the bytes otherwise: the clause, or the attack. */
  readonly departs?: string
}

interface Found {
  readonly method: string | undefined
  readonly target: string | undefined
  readonly version: string
  readonly fields: readonly string[]
  /** Undefined where its end was not reached. */
  readonly body: string | undefined
  readonly leaves: boolean
  readonly expects: boolean
  readonly persists: boolean
}

interface Reading {
  readonly text: string
  /** What two readers have to agree on. Only one of them may show the head of a message that both refuse. */
  readonly gist: string
}

/** The fields of a head, as the rows write them. */
export function fieldsInWords(fields: readonly string[]): string {
  return `{${fields.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${fields[i + 1]}`] : [])).join('; ')}}`
}

function inWords({ method, target, version, fields, body, leaves, expects, persists }: Found): string {
  const parts = [method, target, version, fieldsInWords(fields)]
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
  const heard = open && refused ? messages.slice(0, -1) : messages
  return {
    text: [...messages.map(inWords), ...end, ...waits].join(', '),
    gist: [...heard.map(inWords), ...end].join(', '),
  }
}

/** What the sidecar makes of these pieces. Its connections read nothing behind a message that ends them. */
async function readHere(pieces: readonly Buffer[]): Promise<Reading> {
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

/** The same by Node's own llhttp, which does not tell whether half a head has come. */
async function readThere(bytes: Buffer): Promise<Reading> {
  const { messages, fault } = await readRowByNode(bytes)
  const found = messages.map(({ event, ...message }) => ({
    ...message,
    leaves: event === 'upgrade' || event === 'connect',
    expects: event.startsWith('check'),
  }))
  return readingOf(found, fault !== undefined, false)
}

/** Stands behind a row whose last request keeps its connection: for both readers it begins at the same byte. */
const NEXT = 'GET /next HTTP/1.1\r\n\r\n'
const NEXT_READ = ', GET /next 1.1 {} ""'

/** Holds the sidecar's reader to what each row says, and to llhttp, unless the row says why it departs from it. */
export function describeRequests(title: string, rows: readonly RequestRow[]): void {
  describe(title, () => {
    it.each(rows.map((row) => [row.name, row] as const))('H96 C20 %s', async (_name, row) => {
      const bytes = Buffer.from(row.bytes, 'latin1')
      const here = await readHere([bytes])
      expect(here.text).toBe(row.reads)
      expect(await readHere(Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual(here)
      const there = await readThere(bytes)
      if (row.departs !== undefined) {
        expect(there.gist, 'llhttp agrees: the row departs no longer').not.toBe(here.gist)
        return
      }
      expect(there.gist).toBe(here.gist)
      if (!row.reads.endsWith('"')) return
      const longer = Buffer.concat([bytes, Buffer.from(NEXT)])
      expect((await readHere([longer])).text).toBe(row.reads + NEXT_READ)
      expect((await readThere(longer)).text).toBe(row.reads + NEXT_READ)
    })
  })
}
