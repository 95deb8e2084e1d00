import { type Contestant, compete, startPeers, under } from '../contest/contest.ts'
import { busyNotes, costCheck, ratioCheck, rowFaults, rowsTable } from '../contest/row.ts'
import type { Figure } from '../lab.ts'
import { type FixedResponse, fixedResponsePeer } from '../peers/node-peers.ts'
import { posternPeer } from '../peers/postern.ts'
import { requestOnce } from '../request.ts'

/** Longer than any run, so that no new window opens during it. */
const LONG_WINDOW = ['limits.api.window=1d']

/** More requests than the documented limit of 60. */
const MORE_THAN_THE_LIMIT = 100

export const refusals: Figure = {
  id: 'P2',
  title: 'Refusals per second',
  about:
    'Every request is past the limit and gets 429, beside a bare node:http server that sends the same bytes to every client without checks.',
  async measure(lab) {
    const ours = await startPeers(lab, [
      posternPeer({ lifted: false, set: LONG_WINDOW, program: lab.program }),
    ])
    const refusal = await refusalOf(ours[0])
    const bare = await startPeers(lab, [fixedResponsePeer(refusal, lab.program)])
    const contestants = under(lab.wrk ?? lab.autocannon, [...ours, ...bare])
    const rows = await compete(lab, contestants, refusal)
    const what = 'of the rate of bare node:http with the same bytes'
    return {
      checks: [
        ratioCheck(rows, 'node:http', { id: 'P2 node:http', what, reach: 1 }),
        costCheck(rows, 'P2 CPU', 'processor time per refusal'),
      ],
      tables: [rowsTable('Refusing, every server on one core', rows)],
      notes: busyNotes(rows),
      faults: rowFaults(rows),
    }
  },
}

/** The refusal of Postern past the limit, without the fields that the server of Node adds to each response. */
async function refusalOf(contestant: Contestant | undefined): Promise<FixedResponse> {
  if (contestant === undefined) throw new Error('Postern is not among the peers')
  const { url, headers } = contestant.running
  const own = /^(?:date|connection|keep-alive)$/i
  for (let tries = 0; tries < MORE_THAN_THE_LIMIT; tries += 1) {
    const { status, fields, body } = await requestOnce(url, { headers })
    if (status !== 429) continue
    return { status, fields: fields.filter((_, i) => !own.test(fields[i - (i % 2)] ?? '')), body }
  }
  throw new Error('Postern refuses nothing')
}
