// Which methods of the official client a script has called, of all that there are.
const called = new Set();
const all = [];

export const watch = (client) => {
  for (const [name, service] of Object.entries(client)) {
    for (const method of Object.getOwnPropertyNames(Object.getPrototypeOf(service))) {
      if (method === "constructor") continue;
      all.push(`${name}.${method}`);
      const own = service[method].bind(service);
      service[method] = (...given) => {
        called.add(`${name}.${method}`);
        return own(...given);
      };
    }
  }
  return client;
};

export const tell = () =>
  console.log(JSON.stringify({ all: all.sort(), called: [...called].sort() }));
