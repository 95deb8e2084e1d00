import type { ResponseRules } from '../../src/http1/response-reader.ts'
import { type Read, readByNode, readResponse } from './read-response.ts'

/** Compares the readings of the sidecar by its three sets of rules with that of Node. */
export interface ResponseComparison {
  /** Whether the strict rules accept the bytes. */
  readonly strict: boolean
  /** Whether only `auto` accepts them. */
  readonly tolerated: boolean
  readonly disagreements: readonly string[]
}

const RULES: readonly ResponseRules[] = ['strict', 'auto', 'tolerant']

/** Known differences between Node and the strict rules. The cases in `responses/` state the reasons. */
const DEPARTURES: readonly RegExp[] = [
  // Node takes an interim response of HTTP/1.0, or with `Connection: close`, for the final one.
  /^HTTP\/1\.0 1/m,
  /^HTTP\/1\.1 1(?:(?!\r\n\r\n).)*\r\nconnection:[^\r]*close/ims,
  // Node does not recognize a coding with a trailing tab.
  /^transfer-encoding[ \t]*:[^\r\n]*\t/im,
  // Node refuses an empty coding even without a body. After chunked, an empty one makes the body end with the connection.
  /^transfer-encoding[ \t]*:(?:[^\r\n]*,)?\s*$/im,
  // Node refuses a length among the trailers. The sidecar drops trailers.
  /\r\n0+(?:;[^\r]*)?\r\n.*content-length/is,
]

/** Known differences between the body in the lenient mode of Node and that of the tolerant rules. */
const LENIENT_DEPARTURES: readonly RegExp[] = [
  ...DEPARTURES,
  // In Node a CR without LF ends a line or a head.
  /\r(?!\n)/,
  // In Node identity after chunked makes the body end with the connection.
  /identity/i,
  // The sidecar turns a control character into a space. In Node it is part of the coding.
  /^transfer-encoding[ \t]*:[^\r\n]*[^\r\n\t -~\x80-\xff]/im,
]

/**
 * Checks the readings of a response that arrives in these pieces, after which the connection ends:
 * - Node reads the same from whatever the strict rules accept;
 * - `auto` agrees with the strict rules where these accept, and with the tolerant rules otherwise;
 * - the tolerant rules find the same body as Node in lenient mode;
 * - the pieces make no difference to any of them.
 */
export async function compareResponses(
  pieces: readonly Buffer[],
  method: string,
): Promise<ResponseComparison> {
  const bytes = Buffer.concat(pieces)
  const full = pieces.filter(({ length }) => length > 0)
  const [strict, auto, tolerant] = RULES.map((rules) => readResponse([bytes], method, rules)) as [
    Read,
    Read,
    Read,
  ] // three rules
  const disagreements: string[] = []
  const expectSame = (what: string, one: unknown, other: unknown): void => {
    const [left, right] = [JSON.stringify(one), JSON.stringify(other)]
    if (left !== right) disagreements.push(`${what}: ${left} and ${right}`)
  }
  for (const [i, read] of [strict, auto, tolerant].entries()) {
    expectSame(`cuts, ${RULES[i]}`, withoutRest(read), withoutRest(readResponse(full, method, RULES[i])))
  }
  const node = await readByNode(bytes, { method })
  const text = bytes.toString('latin1')
  const departs = (departures: readonly RegExp[]): boolean => departures.some((each) => each.test(text))
  // Bytes after a response do not affect its reading here, and are an error in Node.
  if (strict.end === 'whole' && !departs(DEPARTURES)) {
    const { interim, head, body } = strict
    expectSame('strict beside Node', { interim, head, body }, node)
  }
  if (strict.end !== 'malformed') expectSame('auto beside strict', auto, strict)
  else if (auto.tolerated && strict.head === undefined && strict.interim.length === 0)
    expectSame('auto beside tolerant', auto, { ...tolerant, tolerated: true })
  const lenient = await readByNode(bytes, { method, lenient: true })
  if (
    tolerant.end === 'whole' &&
    lenient !== undefined &&
    hasPlainFields(text) &&
    !departs(LENIENT_DEPARTURES)
  )
    expectSame(
      'tolerant beside lenient Node',
      [tolerant.head?.[0], tolerant.body],
      [lenient.head?.[0], lenient.body],
    )
  return {
    strict: strict.end === 'whole',
    tolerated: strict.end === 'malformed' && auto.end === 'whole',
    disagreements,
  }
}

const FIELD = /^[!#$%&'*+.^_`|~\w-]+[ \t]*:/

/** Whether each line of each head is a field: lenient Node reads folded lines and lines without a colon differently. */
function hasPlainFields(text: string): boolean {
  const heads = text
    .replace(/^[\r\n]+/, '')
    .split(/^HTTP\/.*$/im)
    .slice(1)
  return heads.every((head) => {
    const [fields = ''] = head.replace(/^\r*\n/, '').split(/(?:^|\n)\r*\n/, 1)
    return fields.split(/\r*\n/).every((line) => line === '' || FIELD.test(line))
  })
}

/** Bytes after a response may arrive too late to be noticed. */
function withoutRest(read: Read): Read {
  return { ...read, end: read.end.replace(', with more after it', '') }
}
