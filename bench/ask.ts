import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

export interface Question {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Answer {
  readonly status: number
  /** Names and values in turn, as they came. */
  readonly fields: readonly string[]
  readonly body: string
  /** The bytes of status line and fields. */
  readonly headBytes: number
}

/** Asks a server of ours one thing, on a connection of its own; whoever vouches for its certificate. Within 10 s. */
export function ask(url: string, { method = 'GET', headers = {}, body }: Question = {}): Promise<Answer> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    // The certificates here are self-signed, by the sidecar, on loopback.
    const options = { method, headers: { ...headers }, agent: false, rejectUnauthorized: false }
    const sent = request(url, { ...options, signal: AbortSignal.timeout(10_000) }, (response) => {
      const { statusCode: status = 0, statusMessage = '', rawHeaders: fields } = response
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status, fields, body: text, headBytes: headBytes(statusMessage, fields) }),
      )
    })
    sent.on('error', reject)
    // Otherwise Node says `close`, and an answer to that is not like those to a load.
    sent.setHeader('Connection', 'keep-alive')
    sent.end(body)
  })
}

function headBytes(reason: string, fields: readonly string[]): number {
  const line = 'HTTP/1.1 200 \r\n'.length + reason.length
  // Behind each name `: `, behind each value CRLF; then an empty line.
  return line + fields.reduce((sum, text) => sum + Buffer.byteLength(text, 'latin1') + 2, 0) + 2
}
