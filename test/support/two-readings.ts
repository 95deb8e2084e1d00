import { METHODS } from 'node:http'
import type { Http1RequestHead } from '../../src/http1/request-head.ts'
import { readInPieces } from './http1-intake.ts'
import { readByNode } from './nodes-reading.ts'

/** How two readers compare on some bytes. */
export interface Comparison {
  /** Whether the sidecar took the first message of them for a request. */
  readonly accepted: boolean
  /** What Node says otherwise, if it does. */
  readonly disagreements: readonly string[]
}

/**
 * Whether Node's parser agrees with what the sidecar takes for a request: there may be no bytes that the sidecar takes and
 * Node does not, or takes for another message, or for one that ends elsewhere. The gate refuses methods that Node
 * does not know, and 8-bit bytes in the target: Node gets such a message with others in their place.
 */
export async function compareWithNode(bytes: Buffer): Promise<Comparison> {
  const { messages, left, fault } = await readInPieces([bytes], { most: 1 })
  const [ours] = messages
  if (ours === undefined) return { accepted: false, disagreements: [] }
  const { head, body, whole } = ours
  const method = METHODS.includes(head.method) ? head.method : 'PUT'
  const target = head.target.replaceAll(/[\x80-\xff]/g, 'x')
  const read = withStart(bytes.subarray(0, bytes.length - left), head, `${method} ${target} `)
  // Trailers go nowhere, whatever Node thinks of them.
  const trails = whole && head.framing === 'chunked'
  const nodes = (await readByNode(read)) ?? (trails ? await readByNode(withoutTrailers(read)) : undefined)
  if (nodes === undefined) {
    // A body that turns out broken is refused by both.
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
    // A connection is never kept that Node would close.
    ['persistence', head.persists && !head.leavesHttp && !nodes.persists, false],
  ]
  return {
    accepted: true,
    disagreements: pairs
      .filter(([, one, other]) => one !== other)
      .map(([what, one, other]) => `${what}: ${String(one)} here, ${String(other)} for Node`),
  }
}

/** A message with another method and target; before them stand line ends at most. */
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
