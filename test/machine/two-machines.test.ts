import { expect, it } from 'vitest'
import { addDevice } from './equipment.ts'
import { bootMachine, minimalDebian, needsMachine } from './machine.ts'

it('a unit that stops in one machine leaves the unit of that name in another one alone', async () => {
  needsMachine('systemd-nspawn', 'nsenter')
  const roots = [await minimalDebian(), await minimalDebian()] as const
  for (const root of roots) addDevice(root)
  const [one, other] = await Promise.all([
    bootMachine(roots[0]),
    bootMachine(roots[1], { filtersPackets: true }),
  ])
  for (const command of ['start', 'stop']) {
    expect((await one.run(`systemctl ${command} device.socket`)).code).toBe(0)
    const answer = await other.run('curl -sS -m 30 http://127.0.0.1:8080/')
    expect(answer).toEqual({ code: 0, stdout: 'device\n', stderr: '' })
  }
}, 900_000)
