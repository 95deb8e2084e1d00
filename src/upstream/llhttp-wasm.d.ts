/** Of what every Node has, the part that is used here: the types of Node leave it to those of the browser. */
declare namespace WebAssembly {
  class Module {
    constructor(code: Uint8Array)
  }
  class Instance {
    constructor(module: Module, imports: object)
    readonly exports: object
  }
}

/** llhttp, compiled. */
declare module 'undici/lib/llhttp/llhttp-wasm.js' {
  const code: Uint8Array
  export default code
}
