import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { needs, needsLibrary } from '../support/tools.ts'
import { aspects } from './aspects.ts'
import { isThere, measureAll, type Row } from './matrix.ts'
import { cellsOn, devicesPage, notesOn, signOf } from './page.ts'
import { type RealServer, servers } from './servers.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/devices.md'), 'utf8')

/** Skips the test where the server is missing. */
function needsServer({ name, program, probe }: RealServer): void {
  if (probe === undefined) needs(program)
  else needsLibrary(name, probe)
}

describe('In front of real servers', () => {
  let rows: ReadonlyMap<string, Row>
  beforeAll(async () => {
    rows = await measureAll()
  }, 600_000)

  describe.each(servers)('$name', (server) => {
    it.each(aspects)('C21 is as direct, or as docs/devices.md says: $name', (aspect) => {
      needsServer(server)
      const { bench, findings } = rows.get(server.name) ?? expect.fail('it did not start')
      const expected = cellsOn(page, server.name)?.get(aspect.name)
      const found = signOf(findings.get(aspect.name) ?? 'none', notesOn(page))
      expect(found, String(bench.differences.get(aspect.name))).toBe(expected)
    })
  })

  it('.ci/run installs each of them', () => {
    const text = readFileSync(join(import.meta.dirname, '../../.ci/run'), 'utf8')
    expect(servers.filter(({ debian }) => !text.includes(debian)).map(({ name }) => name)).toEqual([])
  })

  it('docs/devices.md is what npm run devices writes', () => {
    for (const server of servers) needsServer(server)
    expect(servers.every(isThere)).toBe(true)
    expect(page).toBe(devicesPage(rows))
  })
})
