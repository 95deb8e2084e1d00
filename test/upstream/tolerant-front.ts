import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Forward } from '../../src/http/admission.ts'
import { Http1Exchange } from '../../src/listen/http1-exchange.ts'
import type { AnswerRules, RelayEnd } from '../../src/upstream/relay.ts'
import type { UpstreamDeadlines, UpstreamTarget } from '../../src/upstream/target.ts'
import { forwardTolerantly } from '../../src/upstream/tolerant-lane.ts'
import { closeLater } from '../support/cleanup.ts'

export interface Front {
  readonly url: string
  /** How the attempts ended, in order. */
  readonly ends: readonly RelayEnd[]
  waitForEnd(): Promise<RelayEnd>
}

export interface FrontOptions {
  readonly deadlines?: Partial<UpstreamDeadlines>
  readonly target?: Partial<UpstreamTarget>
}

/** The tolerant lane behind a real listener, without gate or header policy, so that its own doing shows. */
export async function startFront(
  device: { readonly url: string },
  options: FrontOptions = {},
): Promise<Front> {
  const ends: RelayEnd[] = []
  const changes = new EventEmitter()
  const target = { ...targetOf(device.url), ...options.target }
  const deadlines = { connect: 2000, response: 2000, idle: 2000, ...options.deadlines }
  const server = createServer((request, response) => {
    const exchange = new Http1Exchange(request, response, {
      secure: false,
      localPort: 0,
      upgrade: false,
      expects: false,
    })
    request.socket.once('close', () => exchange.clientGone())
    const length = request.headers['content-length']
    const framing =
      request.headers['transfer-encoding'] !== undefined ? 'chunked' : Number(length ?? Number.NaN)
    // Only the gate makes one; here there is none, and the lane reads these two.
    const admission = {
      target: request.url ?? '',
      framing: Number.isNaN(framing) ? null : framing,
    } as unknown as Forward
    const timeouts = {
      uploadTimeout: deadlines.idle,
      reader: { longest: deadlines.idle, whenCrowded: deadlines.idle, isCrowded: () => false },
    }
    const answer: AnswerRules = {
      project: (device, status) => (status === 204 ? [] : endToEnd(device)),
      onHead() {},
    }
    const sent = endToEnd(request.rawHeaders)
    forwardTolerantly(admission, exchange, sent, { target, deadlines, ...timeouts }, answer).then((end) => {
      ends.push(end)
      changes.emit('end', end)
      if (end.kind === 'failed') exchange.reply({ status: 502, fields: [], body: '' })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo // listening on TCP
  return {
    url: `http://127.0.0.1:${port}`,
    ends,
    async waitForEnd() {
      if (ends.length === 0) await once(changes, 'end')
      return ends[0] as RelayEnd // just seen to be there
    },
  }
}

function targetOf(url: string): UpstreamTarget {
  const unix = /^http\+unix:(.*)$/.exec(url)
  return {
    origin: unix === null ? url : 'http://localhost',
    socketPath: unix?.[1],
    ca: undefined,
    insecure: false,
  }
}

function keeps(name: string): boolean {
  return !['transfer-encoding', 'connection', 'keep-alive'].includes(name.toLowerCase())
}

function endToEnd(fields: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (keeps(fields[i] ?? '')) kept.push(fields[i] ?? '', fields[i + 1] ?? '')
  }
  return kept
}
