import { CONNECTIONS, type Contestant, compete, startPeers, stopPeers } from '../contest/contest.ts'
import {
  busyNotes,
  costCheck,
  latencyChart,
  rateChart,
  ratioCheck,
  rowFaults,
  rowsTable,
} from '../contest/row.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Figure } from '../figure.ts'
import type { Lab } from '../lab.ts'
import { haproxyPeer } from '../peers/haproxy.ts'
import { nginxAuthPeer, nginxPeer } from '../peers/nginx.ts'
import {
  fastifyPeer,
  fastProxyPeer,
  httpProxy3KeepAlivePeer,
  httpProxy3Peer,
  tcpRelayPeer,
  undiciPeer,
} from '../peers/node-peers.ts'
import { posternPeer } from '../peers/postern.ts'

export const forwarding: Figure = {
  id: 'P1',
  title: 'Admitted requests forwarded per second',
  about: `${CONNECTIONS} keep-alive HTTP/1.1 connections request 27 bytes of JSON. Postern checks the token, counts the window, updates its metrics and writes its log; only its limits are lifted.`,
  async measure(lab) {
    const started = await startPeers(
      lab,
      [
        posternPeer({ program: lab.program }),
        httpProxy3Peer,
        httpProxy3KeepAlivePeer,
        fastifyPeer,
        fastProxyPeer,
        nginxAuthPeer,
        undiciPeer,
        haproxyPeer,
        nginxPeer,
        tcpRelayPeer,
      ],
      lab.device.port,
    )
    const rows = await compete(lab, underGenerators(lab, started), { status: 200, body: DEVICE_BODY })
    await stopPeers(started)
    const ratio = (peer: string, what: string, reach?: number, aim?: number): ReturnType<typeof ratioCheck> =>
      ratioCheck(rows, { id: `P1 ${peer}`, what: `of the rate of ${what}`, peer, reach, aim })
    return {
      checks: [
        ratio('haproxy', 'HAProxy doing the same job', 0.6, 0.75),
        ratio('fastify', 'Fastify with http-proxy, rate-limit and bearer-auth', 1.8),
        ratio('http-proxy-3', 'bare http-proxy-3', 1.9),
        ratio('nginx auth_request', 'nginx with auth_request to a token service', 1.3),
        ratio('http-proxy-3-keep-alive', 'http-proxy-3 with a keep-alive agent'),
        ratio('fast-proxy', 'bare fast-proxy'),
        ratio('nginx', 'bare nginx'),
        costCheck(rows, 'P1 CPU', 'processor time per forwarded request'),
      ],
      charts: [rateChart('Requests forwarded per second', rows), latencyChart('Latency at full load', rows)],
      tables: [rowsTable('Forwarding, every peer on one core', rows)],
      notes: busyNotes(rows),
      faults: rowFaults(rows),
    }
  },
}

/** autocannon loads the peers that it can saturate, wrk the others. Postern runs under both, for comparison with each. */
function underGenerators({ wrk, autocannon }: Lab, started: readonly Contestant[]): Contestant[] {
  return started.flatMap((contestant) => {
    const under = (generator: Contestant['generator']): Contestant => ({ ...contestant, generator })
    if (wrk === undefined) return [under(autocannon)]
    if (contestant.peer.name === 'postern') return [under(autocannon), under(wrk)]
    return [under(contestant.peer.fast ? wrk : autocannon)]
  })
}
