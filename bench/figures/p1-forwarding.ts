import { CONNECTIONS, type Contestant, compete, startPeers, under } from '../contest/contest.ts'
import { busyNotes, costCheck, OURS, ratioCheck, rowFaults, rowsTable } from '../contest/row.ts'
import type { Check } from '../figure.ts'
import type { Figure, Lab } from '../lab.ts'
import { haproxyPeer } from '../peers/haproxy.ts'
import { haproxyLuaPeer } from '../peers/haproxy-lua.ts'
import { nginxAuthPeer, nginxPeer } from '../peers/nginx.ts'
import { fastifyPeer } from '../peers/node-peers.ts'
import { posternPeer } from '../peers/postern.ts'

const PEERS = [fastifyPeer, nginxAuthPeer, haproxyPeer, haproxyLuaPeer(), nginxPeer]

export const forwarding: Figure = {
  id: 'P1',
  title: 'Admitted requests forwarded per second',
  about: `${CONNECTIONS} keep-alive HTTP/1.1 connections request 27 bytes of JSON. Postern checks the token, counts the window, updates its metrics and writes its log; only its limits are lifted.`,
  async measure(lab) {
    const started = await startPeers(lab, [posternPeer({ program: lab.program }), ...PEERS])
    const rows = await compete(lab, underGenerators(lab, started))
    const ratio = (peer: string, what: string, reach?: number): Check =>
      ratioCheck(rows, peer, { id: `P1 ${peer}`, what: `of the rate of ${what}`, reach })
    return {
      checks: [
        ratioCheck(rows, 'haproxy', {
          id: 'P1 haproxy CPU',
          what: 'of HAProxy with a file of tokens, by processor time',
          by: 'CPU',
          reach: 0.65,
          aim: 0.75,
        }),
        ratioCheck(rows, 'haproxy with Lua', {
          id: 'P1 haproxy Lua CPU',
          what: 'of HAProxy that also takes logins, by Lua, by processor time',
          by: 'CPU',
        }),
        ratio('haproxy', 'HAProxy with a file of tokens'),
        ratio('fastify', 'Fastify with http-proxy, rate-limit and bearer-auth', 2.8),
        ratio('nginx auth_request', 'nginx with auth_request to a token service', 1.3),
        ratio('nginx', 'bare nginx'),
        costCheck(rows, 'P1 CPU', 'processor time per forwarded request'),
      ],
      tables: [rowsTable('Forwarding, every peer on one core', rows)],
      notes: busyNotes(rows),
      faults: rowFaults(rows),
    }
  },
}

/** autocannon loads the peers that it can saturate, wrk the others. Postern runs under both, for comparison with each. */
function underGenerators({ wrk, autocannon }: Lab, started: readonly Contestant[]): Contestant[] {
  if (wrk === undefined) return under(autocannon, started)
  return started.flatMap((contestant) => {
    const { name, fast } = contestant.peer
    const slow = fast ? [] : under(autocannon, [contestant])
    return fast || name === OURS ? [...slow, ...under(wrk, [contestant])] : slow
  })
}
