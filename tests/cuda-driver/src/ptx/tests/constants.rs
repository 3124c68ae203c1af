//! Variables of constants.

use super::{Argument, launch, memory, module, parse};

const SOURCE: &str = r#"
__constant__ float weights[5] = {0.5f, 1.5f, -2.0f};
__constant__ int zeros[7];
struct Mixed { char a; double b; short c; };
__constant__ Mixed mixed[2] = {{1, 2.5, -3}, {-4, -5.5, 6}};
__constant__ unsigned long long wide = 0x123456789abcdef0ull;
__constant__ unsigned char text[] = "constant";

__forceinline__ __device__ float of(const float *from, int at) { return from[at]; }

extern "C" __global__ void read(const float *given, float *floats, double *doubles, int *numbers, int n) {
    int i = threadIdx.x;
    floats[i] = weights[i % 5];
    // The same code reads memory of either space.
    floats[i + 32] = of(i % 2 ? weights : given, i % 5);
    doubles[i] = mixed[i % 2].a + mixed[i % 2].b + mixed[i % 2].c;
    numbers[i] = zeros[i % 7] + (int)(wide >> i) + text[i % 8];
}
"#;

#[test]
fn constants_are_what_they_were_written_as() {
    let Some(module) = module(SOURCE) else { return };
    let mut given = [9.0_f32, 8.0, 7.0, 6.0, 5.0];
    let (mut floats, mut doubles, mut numbers) = ([0.0_f32; 64], [0.0_f64; 32], [0_i32; 32]);
    let arguments = [
        memory(&mut given),
        memory(&mut floats),
        memory(&mut doubles),
        memory(&mut numbers),
        Argument::Number(0),
    ];
    launch(&module, "read", [1, 32], false, &arguments).unwrap();
    let weights = [0.5, 1.5, -2.0, 0.0, 0.0];
    for i in 0..32 {
        assert_eq!(floats[i], weights[i % 5]);
        assert_eq!(floats[i + 32], if i % 2 == 1 { weights[i % 5] } else { given[i % 5] });
        assert_eq!(doubles[i], [1.0 + 2.5 - 3.0, -4.0 - 5.5 + 6.0][i % 2]);
        let wide = (0x1234_5678_9ABC_DEF0_u64 >> i) as i32;
        assert_eq!(numbers[i], wide.wrapping_add(i32::from(b"constant"[i % 8])));
    }
}

#[test]
fn writes_to_constants_and_reads_beside_them_are_errors() {
    let source = r#"
        __constant__ int values[4] = {1, 2, 3, 4};
        extern "C" __global__ void written(int n) {
            // The compiler must not see the address.
            int *hidden;
            asm("mov.u64 %0, %1;" : "=l"(hidden) : "l"(&values[n]));
            *hidden = 5;
        }
        extern "C" __global__ void beside(int *out, int n) { out[0] = values[n]; }"#;
    let Some(module) = module(source) else { return };
    let said = launch(&module, "written", [1, 1], false, &[Argument::Number(2)]).unwrap_err().to_string();
    assert!(said.contains("written, line ") && said.contains("4 bytes at 0x59"), "{said}");
    let mut out = [0];
    launch(&module, "beside", [1, 1], false, &[memory(&mut out), Argument::Number(3)]).unwrap();
    assert_eq!(out, [4]);
    let said = launch(&module, "beside", [1, 1], false, &[memory(&mut out), Argument::Number(4)]);
    assert!(said.unwrap_err().to_string().contains("4 bytes at 0x10 are not its"));
}

#[test]
fn errors_of_constants_name_the_line() {
    let of = |line: &str| parse(&format!(".version 7.8\n.target sm_80\n.address_size 64\n{line}\n"));
    for (line, wrong) in [
        (".const .align 4 .b8 x[];", "line 4: `x`, a constant, has no size"),
        (".const .b8 x[70000];", "line 4: 70000 bytes of constants exceed 65536"),
        (".const .b8 x[2] = {1, 2, 3};", "line 4: `x` has more values than its 2 bytes"),
        (".const .b64 x[1] = {y};", "line 4: `y` is no number, which a constant begins with"),
        (".const .b32 x[2] = {1, 2;", "line 4: `}` expected, this is `;`"),
    ] {
        assert_eq!(of(line).unwrap_err(), wrong);
    }
    let module =
        of(".const .b8 a = 7;\n.const .align 4 .b32 b[2] = {-1};\n.const .f64 c = 0d3FF0000000000000;")
            .unwrap();
    assert_eq!(module.constants, [0xFFFF_FFFF_0000_0007, 0, 0x3FF0_0000_0000_0000]);
}
