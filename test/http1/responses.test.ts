import { join } from 'node:path'
import { expect } from 'vitest'
import type { ResponseRules } from '../../src/http1/response-reader.ts'
import { inside, runCases } from '../support/cases.ts'
import { bytesOf, shownBytes } from '../support/shown-bytes.ts'
import { type NodesRead, type Read, readByNode, readResponse } from './read-response.ts'
import { shownFields } from './shown-fields.ts'

function headText(status: number, reason: string, fields: readonly string[]): string {
  return [status, ...(reason === '' ? [] : [shownBytes(reason)]), shownFields(fields)].join(' ')
}

/** The interim responses and the final one, a line each. */
function textOf({ interim, head: [status, reason, fields] = [0, '', []], body }: NodesRead): string {
  const final = `${headText(status, reason, fields)} "${shownBytes(body)}"`
  return [...interim.map(([code, itsFields]) => headText(code, '', itsFields)), final].join('\n')
}

/** What the sidecar reads, and `more` for bytes that follow; or why it refuses the bytes. */
function shownReading(found: Read): string {
  if (!found.end.startsWith('whole')) return `refused: ${found.end}`
  return found.end === 'whole' ? textOf(found) : `${textOf(found)}\nmore`
}

/** A reading as Node's can be, which refuses without a reason, and tells nothing of bytes that follow. */
const plain = (text: string): string => (text.startsWith('refused') ? 'refused' : text.replace(/\nmore$/, ''))

runCases(join(import.meta.dirname, 'responses'), {
  given: ['asked', 'around', 'bytes'],
  results: ['strict', 'auto', 'tolerant'],
  remarks: ['unlike', 'lenient'],
  async play({ asked, around, bytes: shown = '', unlike, lenient }) {
    const bytes = bytesOf(inside(around, shown))
    const inBytes = Array.from(bytes, (byte) => Buffer.of(byte))
    const read = (rules: ResponseRules, pieces = [bytes]) => readResponse(pieces, asked, rules)
    const textBy = (rules: ResponseRules): string => {
      const text = shownReading(read(rules))
      // Bytes after a response may arrive too late to be noticed.
      expect(plain(shownReading(read(rules, inBytes))), `${rules}, byte by byte`).toBe(plain(text))
      return text
    }
    const [strict, auto, tolerant] = [textBy('strict'), textBy('auto'), textBy('tolerant')]
    if (plain(auto) !== 'refused') expect(read('auto').tolerated).toBe(auto !== strict)
    const node = await readByNode(bytes, { method: asked })
    const there = node === undefined ? 'refused' : textOf(node)
    if (unlike === undefined) expect(there, 'llhttp differs: say behind `unlike` why').toBe(plain(strict))
    else expect(there, 'llhttp agrees: remove `unlike`').not.toBe(plain(strict))
    const nodes = await readByNode(bytes, { method: asked, lenient: true })
    const here = read('tolerant')
    const differs = nodes !== undefined && here.end.startsWith('whole') && nodes.body !== here.body
    expect(differs, 'another body than lenient llhttp: `lenient` says why').toBe(lenient !== undefined)
    return {
      strict,
      auto: auto === strict ? undefined : auto,
      tolerant: tolerant === auto ? undefined : tolerant,
    }
  },
})
