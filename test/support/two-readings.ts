import { METHODS } from 'node:http'
import type { Http1RequestHead } from '../../src/http1/request-head.ts'
import { readInPieces } from './http1-intake.ts'
import { readByNode } from './nodes-reading.ts'

/** How the sidecar and Node read the same bytes. */
export interface Comparison {
  /** Whether the sidecar accepted the first message as a request. */
  readonly accepted: boolean
  /** Where Node reads the message differently. */
  readonly disagreements: readonly string[]
}

/**
 * Compares the sidecar's parser with Node's. The sidecar must not accept bytes that Node refuses, reads as another
 * message, or ends at another byte (request smuggling). The gate refuses methods that Node does not know, and 8-bit
 * bytes in the target, so Node gets such a message with a known method and ASCII bytes instead.
 */
export async function compareWithNode(bytes: Buffer): Promise<Comparison> {
  const { messages, left, fault } = await readInPieces([bytes], { most: 1 })
  const [ours] = messages
  if (ours === undefined) return { accepted: false, disagreements: [] }
  const { head, body, whole } = ours
  const method = METHODS.includes(head.method) ? head.method : 'PUT'
  const target = head.target.replaceAll(/[\x80-\xff]/g, 'x')
  const read = withStart(bytes.subarray(0, bytes.length - left), head, `${method} ${target} `)
  // The sidecar drops trailers, so it does not matter whether Node accepts them.
  const mayHaveTrailers = whole && head.framing === 'chunked'
  const nodes =
    (await readByNode(read)) ?? (mayHaveTrailers ? await readByNode(withoutTrailers(read)) : undefined)
  if (nodes === undefined) {
    // Both refuse a broken body.
    return { accepted: true, disagreements: fault === undefined ? ['Node refuses it'] : [] }
  }
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['method', method, nodes.method],
    ['target', target, nodes.target],
    ['version', head.version, nodes.version],
    ['fields', JSON.stringify(head.fields), JSON.stringify(nodes.fields)],
    ['leaving HTTP', head.leavesHttp, nodes.event === 'upgrade' || nodes.event === 'connect'],
    ['expectation', head.expects, nodes.event.startsWith('check')],
    ['body', whole && !head.leavesHttp ? body : undefined, head.leavesHttp ? undefined : nodes.body],
    // The sidecar must not keep a connection that Node would close.
    ['persistence', head.persists && !head.leavesHttp && !nodes.persists, false],
  ]
  return {
    accepted: true,
    disagreements: pairs
      .filter(([, one, other]) => one !== other)
      .map(([what, one, other]) => `${what}: ${String(one)} here, ${String(other)} for Node`),
  }
}

/** The message with another method and target. Only line ends may precede them. */
function withStart(message: Buffer, { method, target }: Http1RequestHead, start: string): Buffer {
  return Buffer.from(
    message.toString('latin1').replace(`${method} ${target} `, () => start),
    'latin1',
  )
}

const LAST_CHUNK_AND_TRAILERS = /(\r\n0+(?:;[^\r\n]*)?\r\n)(?:[^\r\n]+:[^\r\n]*\r\n)+\r\n$/

function withoutTrailers(message: Buffer): Buffer {
  return Buffer.from(message.toString('latin1').replace(LAST_CHUNK_AND_TRAILERS, '$1\r\n'), 'latin1')
}
