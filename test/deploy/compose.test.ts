import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { judgeCompose } from './judge-compose.ts'

const DEPLOY = join(import.meta.dirname, '../../deploy')
const text = readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8')
const compose = parse(text)

test('H123 docker-compose takes compose.yaml, and refuses an unknown key and a service that is not there', async () => {
  expect(await judgeCompose(text)).toBe('')
  expect(await judgeCompose(text.replace('read_only', 'read_onyl'))).toContain("'read_onyl'")
  expect(await judgeCompose(text.replace('service:postern', 'service:postren'))).toContain("'postren'")
})

test('H123 compose.yaml names only files of deploy/, and the password that the operator makes', () => {
  const services: readonly { readonly volumes?: readonly string[] }[] = Object.values(compose.services)
  const mounted = services.flatMap(({ volumes = [] }) => volumes.map((volume) => volume.split(':')[0] ?? ''))
  const files = mounted.filter((source) => source.startsWith('./'))
  expect(files.length).toBeGreaterThan(2)
  expect(files.filter((file) => !existsSync(join(DEPLOY, file)))).toEqual([])
  const { context, dockerfile } = compose.services.postern.build
  expect(existsSync(join(DEPLOY, context, dockerfile))).toBe(true)
  const named = mounted.filter((source) => !source.startsWith('./'))
  expect(named.toSorted()).toEqual(Object.keys(compose.volumes).toSorted())
  expect(compose.secrets).toEqual({ password: { file: './password' } })
  const ignored = readFileSync(join(DEPLOY, '../.gitignore'), 'utf8').split('\n')
  expect(ignored).toEqual(expect.arrayContaining(['/deploy/password', '/deploy/kubernetes/password']))
})

test('H123 only Postern reaches the device, and only the host reaches the metrics', () => {
  const { postern, device, prometheus } = compose.services
  expect(device.networks).toEqual(['device'])
  expect(compose.networks.device).toEqual({ internal: true })
  expect(device.ports).toBe(undefined)
  expect(prometheus.network_mode).toBe('service:postern')
  expect(postern.ports).toEqual(['8443:8443', '127.0.0.1:9090:9090'])
})
