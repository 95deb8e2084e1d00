import { loadTlsMaterial, selfSignedPaths } from '../../src/listen/tls-material.ts'
import { systemClock } from '../../src/system/clock.ts'
import { machineNames } from '../../src/system/machine-names.ts'
import { temporaryFolder } from '../child.ts'
import { compete, startPeers, under } from '../contest/contest.ts'
import { busyNotes, costCheck, type Row, ratioCheck, rowFaults, rowsTable } from '../contest/row.ts'
import type { Check } from '../figure.ts'
import type { Figure } from '../lab.ts'
import { STREAMS } from '../load/h2load.ts'
import { writePem } from '../peers/haproxy.ts'
import { haproxyLuaPeer } from '../peers/haproxy-lua.ts'
import { nginxTlsPeer } from '../peers/nginx.ts'
import { posternPeer } from '../peers/postern.ts'

const HTTP2_CONNECTIONS = 32

export const tls: Figure = {
  id: 'P5',
  title: 'The same over TLS',
  about: `HTTP/1.1 with 64 connections, and HTTP/2 with ${HTTP2_CONNECTIONS} connections of ${STREAMS} streams each, beside nginx with the same certificate; over HTTP/1.1 also beside HAProxy that takes logins, by Lua.`,
  async measure(lab) {
    const folder = await temporaryFolder()
    await loadTlsMaterial('auto', folder, { clock: systemClock, machine: machineNames })
    // As many places at the device as concurrent requests: nginx does not queue either.
    const set = [`upstream.max_in_flight=${HTTP2_CONNECTIONS * STREAMS}`]
    const pair = selfSignedPaths(folder)
    const peers = [posternPeer({ tls: true, set, program: lab.program }), nginxTlsPeer(pair)]
    const started = await startPeers(lab, peers)
    const overHttp1 = await startPeers(lab, [haproxyLuaPeer({ pem: await writePem(pair) })])
    const http1 = await compete(lab, under(lab.wrk ?? lab.autocannon, [...started, ...overHttp1]))
    const http2 = await compete(lab, under(lab.h2load, started), { connections: HTTP2_CONNECTIONS })

    const ratio = (id: string, rows: readonly Row[], protocol: string, reach: number): Check =>
      ratioCheck(rows, 'nginx', { id, what: `of the rate of nginx, ${protocol}`, reach })
    return {
      checks: [
        ratio('P5 HTTP/1.1', http1, 'HTTP/1.1 over TLS', 0.5),
        ratio('P5 HTTP/2', http2, 'HTTP/2', 0.25),
        ratioCheck(http1, 'haproxy with Lua', {
          id: 'P5 haproxy Lua CPU',
          what: 'of HAProxy that also takes logins, by Lua, by processor time, HTTP/1.1 over TLS',
          by: 'CPU',
        }),
        costCheck(http1, 'P5 CPU HTTP/1.1', 'processor time per request, HTTP/1.1 over TLS'),
        costCheck(http2, 'P5 CPU HTTP/2', 'processor time per request, HTTP/2'),
      ],
      tables: [rowsTable('HTTP/1.1 over TLS', http1), rowsTable('HTTP/2', http2)],
      notes: [...busyNotes(http1), ...busyNotes(http2)],
      faults: [...rowFaults(http1), ...rowFaults(http2)],
    }
  },
}
