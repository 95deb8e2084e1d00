import { type Agent, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

export interface RequestOptions {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Of connections that are kept. */
  readonly agent?: Agent
  /** Milliseconds; 30 s by default. */
  readonly timeout?: number
}

export interface ReceivedResponse {
  readonly status: number
  /** Alternating names and values, as received. */
  readonly fields: readonly string[]
  readonly body: string
  /** Size of the status line, the fields and the empty line (bytes). */
  readonly headBytes: number
}

/** Sends one request on its own connection, or one of its agent. Accepts any certificate. */
export function requestOnce(
  url: string,
  { method = 'GET', headers = {}, body, agent, timeout = 30_000 }: RequestOptions = {},
): Promise<ReceivedResponse> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    // The sidecar signs its own certificate, and the connection stays on loopback.
    const options = { method, headers: { ...headers }, agent: agent ?? false, rejectUnauthorized: false }
    const sent = request(url, { ...options, signal: AbortSignal.timeout(timeout) }, (response) => {
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
    // Without this Node sends `Connection: close`, and the response differs from those that a load gets.
    sent.setHeader('Connection', 'keep-alive')
    sent.end(body)
  })
}

function headBytes(reason: string, fields: readonly string[]): number {
  const line = 'HTTP/1.1 200 \r\n'.length + reason.length
  // Each name is followed by `: `, each value by CRLF; the head ends with an empty line.
  return line + fields.reduce((sum, text) => sum + Buffer.byteLength(text, 'latin1') + 2, 0) + 2
}
