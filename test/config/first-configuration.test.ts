import { normalize } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { filePathProblem } from '../../src/config/address.ts'
import { type FirstPassword, firstConfiguration, flow } from '../../src/config/first-configuration.ts'
import { load } from './sources.ts'

const text = fc.string({ minLength: 1, unit: 'grapheme' }).filter((each) => !/[\0:]|\p{Cc}/u.test(each))
const path = fc
  .string({ unit: 'grapheme' })
  .map((each) => `/${each}`)
  .filter((each) => filePathProblem(each) === undefined)

it.each([
  [{}, { min: 1, max: 4 }, 64],
  [{ maxInFlight: 'auto' }, 'auto', 64],
  [{ maxInFlight: 8 }, 8, 64],
  [{ maxInFlight: 3, beside: 1 }, 3, 1],
] as const)('H105 a first configuration has the places %j', (places, maxInFlight, most) => {
  const settings = { file: '/p.yaml', title: '# first', url: 'http://[::1]', stateDir: '/state' }
  const { upstream } = load({
    file: firstConfiguration({ ...settings, ...places, password: { file: '/password' } }),
  })
  expect(upstream).toMatchObject({ maxInFlight, maxStreams: most, maxTunnels: most })
})

it('H105 any path and user survives a first configuration', () => {
  const entry = fc.record({ file: path, user: text })
  fc.assert(
    fc.property(path, path, path, text, entry, (file, passwordFile, stateDir, user, table) => {
      const common = { file, title: '# first', url: 'http://[2001:db8::7]:8080', stateDir }
      const made = (password: FirstPassword['password'], auth?: FirstPassword['auth']) =>
        load({ file: firstConfiguration({ ...common, password, ...(auth && { auth }) }) })
      expect(made({ file: passwordFile })).toMatchObject({
        password: { file: passwordFile },
        stateDir: normalize(stateDir),
      })
      const ca = load({
        file: firstConfiguration({ ...common, tls: flow({ ca: file }), password: { file } }),
      }).upstream.tls
      expect(ca).toMatchObject({ ca: file })
      expect(made({ htpasswd: table }).password).toEqual({ htpasswd: table })
      expect(made({ shadow: table }).password).toEqual({ shadow: table })
      expect(made({ device: true }, { kind: 'basic', user })).toMatchObject({
        password: { device: true },
        upstream: { auth: { kind: 'basic', user }, url: { host: '2001:db8::7', port: 8080 } },
      })
    }),
  )
})
