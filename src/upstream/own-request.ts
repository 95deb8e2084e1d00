import type { Fields } from '../http/fields.ts'
import type { AnswerHandler } from './answer-handler.ts'
import type { Connection } from './connections.ts'
import { DeviceFault } from './failure.ts'

/** A request of the sidecar's own; `body` is short. */
export interface OwnRequest {
  readonly method: 'GET' | 'POST'
  readonly target: string
  readonly fields: Fields
  readonly body?: string
}

/** As much of an answer as the sidecar itself looks at. */
export interface Answer {
  readonly status: number
  readonly fields: Fields
}

/** Of an answer of which nobody reads the page, so much (bytes) is read off the connection; a longer one ends it. */
const LARGEST_PAGE = 128 * 1024

/** Sends it, and gives the head of the answer once there is nothing left of that on the connection. */
export function sendOwn(
  connection: Connection,
  { method, target, fields, body }: OwnRequest,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let answer: Answer | undefined
    let size = 0
    const handler: AnswerHandler = {
      inform() {},
      head(status, _reason, fields) {
        answer = { status, fields }
      },
      data(chunk) {
        size += chunk.length
        if (size > LARGEST_PAGE) connection.abort(TOO_LONG)
      },
      end() {
        if (answer !== undefined) resolve(answer)
      },
      failed(error) {
        if (error === TOO_LONG && answer !== undefined) resolve(answer)
        else reject(error)
      },
    }
    if (body === undefined) {
      connection.send({ method, target, fields, framing: null, body }, handler)
      return
    }
    const bytes = Buffer.from(body)
    const length = ['Content-Length', String(bytes.length)]
    connection.send(
      { method, target, fields: [...fields, ...length], framing: bytes.length, body: once(bytes) },
      handler,
    )
  })
}

const TOO_LONG = new DeviceFault('http_protocol_error')

async function* once(bytes: Buffer): AsyncGenerator<Buffer, void, void> {
  yield bytes
}
